// Bindings that add the values of grown trees to scores.
#include <nanobind/stl/optional.h>

#include "bindings/tree_grower.h"
#include "grow/shards/shared_walk.h"

namespace arboost::bindings {
namespace {

void add_leaves(TreeGrower& self, Scores scores, std::size_t output, int n_threads) {
  self.check_scores(scores, self.n_training(), output);
  self.last_with_leaves();
  GilRelease release;
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

}  // namespace

void bind_added_trees(nb::class_<TreeGrower>& grower) {
  grower
      .def("add_leaves", &add_leaves, "scores"_a.noconvert(), "output"_a, "n_threads"_a,
           "Adds the last tree's values to the training rows' scores.")
      .def("add_tree", &add_tree, "tree"_a, "factor"_a, "codes"_a, "rows"_a.none(),
           "scores"_a.noconvert(), "output"_a, "n_threads"_a,
           "Adds a tree's values, times a factor, to the scores of any rows.")
      .def("add_tree", &add_shared_tree, "tree"_a, "factor"_a, "codes"_a, "rows"_a.none(),
           "scores"_a.noconvert(), "output"_a, "n_threads"_a,
           "The same for rows that workers share.");
}

}  // namespace arboost::bindings
