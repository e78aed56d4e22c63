// Bindings that add the values of grown trees to scores.
#include <nanobind/stl/optional.h>

#include "bindings/tree_grower.h"
#include "grow/device/device_rows.h"
#include "grow/shards/share_rows.h"
#include "grow/shards/shared_walk.h"
#include "grow/trees/kept_leaves.h"

namespace arboost::bindings {
namespace {

void add_leaves(TreeGrower& self, Scores scores, std::size_t output, int n_threads) {
  self.check_scores(scores, self.n_training(), output);
  self.last_with_leaves();
  GilRelease release;
  cuda::DeviceRows* device = self.grower.on_device();
  if (device != nullptr && device->round().is_current())
    return device->round().add_last(self.trees, output);
  Team team = self.team(4 * self.n_training(), n_threads);
  self.grower.add_last(self.trees, output, scores.shape(1), scores.data(), team);
}

void check_codes(const TreeGrower& self, std::size_t tree, const Codes& codes) {
  require(tree < self.trees.n_trees() && codes.n_features == self.codes.n_features,
          "the tree does not exist, or the codes belong to another table");
  for (std::size_t f = 0; f < codes.n_features; ++f)
    require(codes.has_levels(f) == self.codes.has_levels(f),
            "the codes have other categories than the grower's table");
}

void add_tree(const TreeGrower& self, std::size_t tree, double factor, const Codes& codes,
              const std::optional<RowIds>& rows, Scores scores, std::size_t output, int n_threads) {
  check_codes(self, tree, codes);
  const auto ids = checked_rows(rows, codes.n_rows);
  const TreeRows tree_rows{ids.empty() ? codes.n_rows : ids.size(), nullptr,
                           ids.empty() ? nullptr : ids.data()};
  self.check_scores(scores, tree_rows.n, output);
  GilRelease release;
  Team team = self.team(8 * tree_rows.n, n_threads);
  self.trees.add(tree, codes, tree_rows, factor, {scores.data() + output, scores.shape(1)}, team);
}

// A tree's values for the training rows in this process; `fetch_scores` brings those of others.
void add_own_tree(TreeGrower& self, std::size_t tree, Scores scores, std::size_t output,
                  int n_threads) {
  require(tree < self.trees.n_trees(), "the tree does not exist");
  self.check_scores(scores, self.n_training(), output);
  GilRelease release;
  Team team = self.team(8 * self.n_training(), n_threads);
  const ScoreRows to{scores.data() + output, scores.shape(1)};
  if (ShareRows* shared = self.grower.shared()) return shared->add_own(self.trees, tree, to, team);
  self.trees.add(tree, self.codes, self.grower.training_rows(), 1.0, to, team);
}

void add_shared_tree(const TreeGrower& self, std::size_t tree, double factor,
                     const SharedTable& table, const std::optional<RowIds>& rows, Scores scores,
                     std::size_t output, int n_threads) {
  check_codes(self, tree, table.codes.local_codes);
  const auto ids = checked_rows(rows, table.codes.n_rows);
  const std::size_t n_rows = ids.empty() ? table.codes.n_rows : ids.size();
  self.check_scores(scores, n_rows, output);
  GilRelease release;
  Team team = self.team(8 * n_rows, n_threads);
  self.trees.add_leaves(tree, shared_leaves(self.trees, tree, table.codes, ids, team), factor,
                        {scores.data() + output, scores.shape(1)}, team);
}

// Leaves of one set of rows in the trees of one grower.
struct RowLeaves {
  std::optional<std::size_t> n_rows{};
  const TreeGrower* grower = nullptr;  // to compare only
  KeptLeaves leaves{};
};

// Trees that are added in turn, each times its factor to its output.
struct AddedTrees {
  const Vector<std::uint32_t>& trees;
  const Vector<double>& factors;
  const Vector<std::uint32_t>& outputs;

  // Throws unless they fit the grower, the scores of n_rows rows and the leaves that are kept.
  void check(const TreeGrower& self, std::size_t n_rows, const Scores& scores,
             RowLeaves& kept) const {
    require(factors.size() == trees.size() && outputs.size() == trees.size(),
            "trees, factors and outputs differ in number");
    for (std::size_t i = 0; i < trees.size(); ++i) {
      require(trees.data()[i] < self.trees.n_trees(), "the tree does not exist");
      self.check_scores(scores, n_rows, outputs.data()[i]);
    }
    require(
        kept.n_rows.value_or(n_rows) == n_rows && (kept.grower == nullptr || kept.grower == &self),
        "these leaves are of other rows or trees");
    kept.n_rows = n_rows;
    kept.grower = &self;
  }
};

void add_trees(const TreeGrower& self, const Vector<std::uint32_t>& trees,
               const Vector<double>& factors, const Vector<std::uint32_t>& outputs,
               const Codes& codes, const std::optional<RowIds>& rows, Scores scores,
               RowLeaves& kept, int n_threads) {
  require(codes.n_features == self.codes.n_features, "the codes belong to another table");
  const auto ids = checked_rows(rows, codes.n_rows);
  const TreeRows tree_rows{ids.empty() ? codes.n_rows : ids.size(), nullptr,
                           ids.empty() ? nullptr : ids.data()};
  AddedTrees{trees, factors, outputs}.check(self, tree_rows.n, scores, kept);
  GilRelease release;
  Team team = self.team(8 * tree_rows.n, n_threads);
  for (std::size_t i = 0; i < trees.size(); ++i)
    kept.leaves.add(self.trees, trees.data()[i], codes, tree_rows, factors.data()[i],
                    {scores.data() + outputs.data()[i], scores.shape(1)}, team);
}

void add_shared_trees(const TreeGrower& self, const Vector<std::uint32_t>& trees,
                      const Vector<double>& factors, const Vector<std::uint32_t>& outputs,
                      const SharedTable& table, const std::optional<RowIds>& rows, Scores scores,
                      RowLeaves& kept, int n_threads) {
  require(table.codes.local_codes.n_features == self.codes.n_features,
          "the codes belong to another table");
  const auto ids = checked_rows(rows, table.codes.n_rows);
  const std::size_t n_rows = ids.empty() ? table.codes.n_rows : ids.size();
  AddedTrees{trees, factors, outputs}.check(self, n_rows, scores, kept);
  GilRelease release;
  Team team = self.team(8 * n_rows, n_threads);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const std::size_t tree = trees.data()[i];
    kept.leaves.add(
        self.trees, tree, n_rows,
        [&] { return shared_leaves(self.trees, tree, table.codes, ids, team); }, factors.data()[i],
        {scores.data() + outputs.data()[i], scores.shape(1)}, team);
  }
}

}  // namespace

void bind_added_trees(nb::module_& m, nb::class_<TreeGrower>& grower) {
  nb::class_<RowLeaves>(m, "RowLeaves", "Leaves of one set of rows in the trees of one grower.")
      .def(nb::init<>());
  grower
      .def("add_leaves", &add_leaves, nb::arg("scores").noconvert(), nb::arg("output"),
           nb::arg("n_threads"),
           "Adds the last tree's values to the training rows' scores; on the device, where it has "
           "newer ones.")
      .def("add_tree", &add_tree, nb::arg("tree"), nb::arg("factor"), nb::arg("codes"),
           nb::arg("rows").none(), nb::arg("scores").noconvert(), nb::arg("output"),
           nb::arg("n_threads"), "Adds a tree's values, times a factor, to the scores of any rows.")
      .def("add_trees", &add_trees, nb::arg("trees"), nb::arg("factors"), nb::arg("outputs"),
           nb::arg("codes"), nb::arg("rows").none(), nb::arg("scores").noconvert(), nb::arg("kept"),
           nb::arg("n_threads"),
           "Adds trees in turn, each times its factor to its output; `kept` is for these rows.")
      .def("add_own_tree", &add_own_tree, nb::arg("tree"), nb::arg("scores").noconvert(),
           nb::arg("output"), nb::arg("n_threads"),
           "Adds a tree's values to the scores of the training rows; where workers share them, of "
           "those in this process, so that `fetch_scores` brings the others.")
      .def("add_tree", &add_shared_tree, nb::arg("tree"), nb::arg("factor"), nb::arg("codes"),
           nb::arg("rows").none(), nb::arg("scores").noconvert(), nb::arg("output"),
           nb::arg("n_threads"), "The same for rows that workers share.")
      .def("add_trees", &add_shared_trees, nb::arg("trees"), nb::arg("factors"), nb::arg("outputs"),
           nb::arg("codes"), nb::arg("rows").none(), nb::arg("scores").noconvert(), nb::arg("kept"),
           nb::arg("n_threads"), "The same for rows that workers share.");
}

}  // namespace arboost::bindings
