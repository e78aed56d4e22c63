// Bindings of the grower: one object that grows trees on one binned table.

#include <algorithm>
#include <limits>
#include <utility>

#include "bindings/criterion_names.h"
#include "bindings/tree_grower.h"
#include "grow/device/device_rows.h"
#include "grow/means.h"
#include "grow/sample/sample.h"
#include "grow/tree_parts.h"
#include "loss/leaf.h"  // no_leaf

namespace arboost::bindings {
namespace {

void propose(TreeGrower& self, const Gradients& gradients, int n_threads) {
  self.check_gradients(gradients, 0);
  GilRelease release;
  Team team = self.team(self.n_training() * self.codes.n_features, n_threads);
  self.grower.propose(gradients, team);
}

void grow(TreeGrower& self, const Gradients& gradients, std::size_t output, TreeRequest request,
          std::shared_ptr<const Sample> sample, int n_threads) {
  self.check_gradients(gradients, output);
  if (sample != nullptr)
    require(sample->size > 0 &&
                (sample->on_device || sample->positions[sample->size - 1] < self.n_training()),
            "the sample does not match the training rows");
  self.has_leaves = false;
  self.sample = std::move(sample);
  request.sample = self.sample.get();
  GilRelease release;
  Team team = self.team(self.n_training() * self.codes.n_features, n_threads);
  self.grower.grow(gradients, output, request, self.trees, team);
  self.has_leaves = true;
}

// A tree for numbers of heavy tails (grow/tree_parts.h).
void grow_in_parts(TreeGrower& self, const TargetArrays& target, TreeRequest request,
                   std::shared_ptr<const Sample> sample, int n_threads) {
  const std::size_t n = self.n_training(), width = self.trees.width;
  self.check_target(target);
  require(sample == nullptr ||
              (sample->size > 0 && !sample->on_device && sample->positions[sample->size - 1] < n),
          "the sample does not match the training rows");
  self.has_leaves = false;
  self.sample = std::move(sample);
  request.sample = self.sample.get();
  GilRelease release;
  if (!self.part_gradients) {
    self.part_gradients = std::make_unique<Gradients>(n, width, width > 1);
    std::fill_n(self.part_gradients->pairs.data(), self.part_gradients->pairs.size(), FixedPair{});
  }
  Team team = self.team(n * self.codes.n_features, n_threads);
  arboost::grow_in_parts(self.grower, target.target(), request, *self.part_gradients, self.trees,
                         team);
  self.has_leaves = true;
}

// Draws the rows of a tree where they are, and where the sample stays.
void draw_with_replacement(TreeGrower& self, Sample& out, std::size_t n_draws, std::uint64_t seed,
                           std::uint64_t draw, const DrawChances* chances) {
  require(n_draws > 0, "no draws");
  require(chances == nullptr || chances->ends.size() == self.n_training(),
          "these chances do not fit the grower's table");
  GilRelease release;
  Team alone(1);
  self.grower.draw_with_replacement(chances, n_draws, {seed, draw}, out, alone);
}

// Rows that a sample on a device left out, with their values in the last tree.
nb::tuple values_outside(TreeGrower& self) {
  self.check_last_is_grown();
  require(self.sample && self.sample->on_device, "the last tree has no sample on a device");
  const std::size_t width = self.trees.width;
  std::vector<std::uint32_t> rows;
  std::vector<double> values;
  without_gil([&] {
    const std::vector<std::uint32_t> leaves = self.grower.leaves_outside();
    const double* of_node = self.trees.values(self.last());
    for (std::size_t row = 0; row < leaves.size(); ++row) {
      if (leaves[row] == no_leaf) continue;
      rows.push_back(static_cast<std::uint32_t>(row));
      values.insert(values.end(), of_node + leaves[row] * width,
                    of_node + (leaves[row] + std::size_t{1}) * width);
    }
    return 0;
  });
  const std::size_t n = rows.size();
  return nb::make_tuple(to_numpy(std::move(rows)), to_numpy<2>(std::move(values), {n, width}));
}

Owned<std::uint32_t> leaf_of_row(const TreeGrower& self) {
  self.last_with_leaves();
  return to_numpy(without_gil([&] { return self.grower.leaf_of_position(); }));
}

Owned<double, 3> leaf_sums(TreeGrower& self, const Gradients& gradients, std::size_t output,
                           int n_threads) {
  self.check_gradients(gradients, output);
  const std::size_t n_nodes = self.trees.n_nodes(self.last_with_leaves());
  auto sums = without_gil([&] {
    Team team = self.team(8 * self.n_training(), n_threads);
    return self.grower.sums(gradients, output, team);
  });
  return to_numpy<3>(std::move(sums), {n_nodes, self.trees.width, 2});
}

void set_values(TreeGrower& self, const Array<double, nb::ndim<2>>& values) {
  const std::size_t tree = self.last();
  require(values.shape(0) == self.trees.n_nodes(tree) && values.shape(1) == self.trees.width,
          "these values do not fit the last tree");
  self.trees.set_values(tree, {values.data(), values.size()}, self.params.monotone);
}

template <auto set>  // means or medians
void set_centres(TreeGrower& self, const TargetArrays& target, bool sets_covers) {
  self.check_last_is_grown();
  self.check_target(target);
  GilRelease release;
  set(self.grower, target.target(), self.sample.get(), sets_covers, self.trees);
}

void drop_last(TreeGrower& self) {
  self.last();
  self.trees.drop_last();
  self.has_leaves = false;
}

// Feature -> (all codes in the order of their mean targets, codes of several levels).
void set_groups(TreeParams& p, const nb::dict& groups) {
  p.grouped.clear();
  for (const auto& [feature, given] : groups) {
    LevelGroups level_groups{nb::cast<std::vector<std::uint8_t>>(given[0]), {}};
    for (const auto code : nb::cast<std::vector<std::uint8_t>>(given[1]))
      put(level_groups.shared, code, true);
    p.grouped.emplace(nb::cast<std::uint32_t>(feature), std::move(level_groups));
  }
}

template <class Table>
void bind_constructor(nb::class_<TreeGrower>& grower) {
  grower.def(nb::init<const Table&, std::size_t, const TreeParams&, const std::optional<RowIds>&,
                      std::shared_ptr<Workspace>>(),
             "codes"_a, "width"_a, "params"_a, "rows"_a.none() = nb::none(),
             "workspace"_a.none() = nb::none(), nb::keep_alive<1, 2>());
}

void bind_params(nb::module_& m) {
  nb::enum_<Candidates>(m, "Candidates", "Between which values splits are tried.")
      .value("bins", Candidates::bins)
      .value("values", Candidates::values)
      .value("per_round", Candidates::per_round)
      .value("per_node", Candidates::per_node);
  nb::class_<TreeParams> params(m, "TreeParams", "Parameters of tree growth; as in params.py.");
  ARBOOST_BIND_FIELDS(params, TreeParams, best_first, min_child_weight, min_samples_leaf,
                      min_samples_split, gamma, min_gain_share, allow_zero_gain, target_ends,
                      random_cuts, reg_lambda, reg_alpha, max_delta_step, colsample_bytree,
                      colsample_bylevel, colsample_bynode, max_cat_to_onehot, max_cat_threshold,
                      min_cat_weight, cat_smooth, cat_l2, monotone, interactions, subtree_rows,
                      device, count_rows, candidates, sketch_eps, histogram_bytes, sample_bytes);
  params.def(nb::init<>())
      .def_prop_rw(
          "max_depth", [](const TreeParams& p) { return p.max_depth; },
          [](TreeParams& p, std::optional<std::int64_t> depth) {
            p.max_depth = depth.value_or(TreeParams::unlimited);
          },
          nb::arg().none())
      .def_prop_rw(
          "max_leaves", [](const TreeParams& p) { return p.max_leaves; },
          [](TreeParams& p, std::optional<std::int64_t> leaves) {
            p.max_leaves = leaves.value_or(TreeParams::unlimited);
          },
          nb::arg().none())
      .def_prop_rw(
          "criterion", [](const TreeParams& p) { return name_of(p.criterion); },
          [](TreeParams& p, const std::string& name) { p.criterion = criterion_of(name); })
      .def_prop_rw(
          "grouped", [](const TreeParams& p) { return p.grouped.size(); }, &set_groups,
          "By grouped category: its codes in the order of their mean targets, and those of several "
          "levels. Reads as the number of such categories.")
      .def_prop_rw(
          "sum_bits", [](const TreeParams& p) { return p.sum_bits; },
          [](TreeParams& p, int bits) {
            require(bits >= 8 && bits <= 31, "sum_bits must be from 8 to 31");
            p.sum_bits = bits;
          });
}

}  // namespace

void bind_grow(nb::module_& m) {
  bind_params(m);
  nb::class_<TargetArrays>(m, "LeafTarget", "Numbers whose means or medians leaves store.")
      .def(nb::init<Array<double, nb::ndim<2>>, std::optional<Vector<double>>>(), "y"_a,
           "weight"_a.none());
  nb::class_<Workspace>(m, "Workspace", "Memory shared by growers that take turns.")
      .def(nb::init<>())
      .def_prop_ro("histogram_bytes", [](const Workspace& self) {
        return self.histograms.size() * self.histogram_size * sizeof(std::int64_t);
      });
  nb::class_<TreeGrower> grower(m, "Grower", "Grows trees on one binned table, and keeps them.");
  bind_constructor<Ranks>(grower);  // before its base
  bind_constructor<Codes>(grower);
  bind_constructor<SharedTable>(grower);
  grower
      .def(
          "propose", &propose, "gradients"_a, "n_threads"_a,
          "Proposes bins for the hessians of a round, before its first tree; with other candidates "
          "than global ones there is nothing to do.")
      .def(
          "grow",
          [](TreeGrower& self, const Gradients& gradients, std::size_t output, std::uint64_t seed,
             std::uint64_t tree, double rate, std::shared_ptr<Sample> sample,
             bool leaves_from_all_rows, std::uint64_t turn, int n_threads) {
            grow(self, gradients, output,
                 {.seed = seed,
                  .number = tree,
                  .turn = turn,
                  .rate = rate,
                  .sample = nullptr,
                  .leaves_from_all_rows = leaves_from_all_rows},
                 std::move(sample), n_threads);
          },
          "gradients"_a, "output"_a, nb::kw_only(), "seed"_a, "tree"_a, "rate"_a,
          "sample"_a.none() = nb::none(), "leaves_from_all_rows"_a = false, "turn"_a = 0,
          "n_threads"_a, "Grows one tree for one output, or for all with vector leaves.")
      .def(
          "grow_in_parts",
          [](TreeGrower& self, const TargetArrays& target, std::uint64_t seed, std::uint64_t tree,
             std::shared_ptr<Sample> sample, int n_threads) {
            grow_in_parts(self, target,
                          {.seed = seed,
                           .number = tree,
                           .turn = 0,
                           .rate = 1.0,
                           .sample = nullptr,
                           .leaves_from_all_rows = false},
                          std::move(sample), n_threads);
          },
          "target"_a, nb::kw_only(), "seed"_a, "tree"_a, "sample"_a.none() = nb::none(),
          "n_threads"_a,
          "Grows one tree for a target of heavy tails, whose parts have scales of their own. Its "
          "values are to be set.")
      .def("draw_with_replacement", &draw_with_replacement, "sample"_a, "n_draws"_a, "seed"_a,
           "draw"_a, "chances"_a.none() = nb::none(),
           "Draws rows with replacement where the rows of this grower are, for its next tree; on a "
           "device, the sample stays there.")
      .def("values_outside", &values_outside,
           "Training rows that the last tree's sample on a device left out, ascending, and the "
           "values (n_rows, width) of their leaves.")
      .def("leaf_of_row", &leaf_of_row,
           "The leaf of each training row in the last tree; 2^32 - 1 outside its sample.")
      .def("leaf_sums", &leaf_sums, "gradients"_a, "output"_a, "n_threads"_a,
           "Sums (n_nodes, width, 2) of gradients and hessians over the last tree's rows.")
      .def("set_values", &set_values, "values"_a, "Replaces the values of the last tree's nodes.")
      .def("set_means", &set_centres<set_means>, "target"_a, nb::kw_only(), "sets_covers"_a = false,
           "Sets the last tree's values to the means of the target in each node, and with "
           "sets_covers its covers to the sums of the weights.")
      .def("set_medians", &set_centres<set_medians>, "target"_a, nb::kw_only(),
           "sets_covers"_a = false, "The same with weighted medians.")
      .def_prop_ro(
          "n_nodes", [](const TreeGrower& self) { return self.trees.n_nodes(self.last()); },
          "Nodes of the last tree.")
      .def_prop_ro("n_trees", [](const TreeGrower& self) { return self.trees.n_trees(); })
      .def("last_tree", &last_tree,
           "Copies of the last tree's value (n_nodes, width), cover and left (n_nodes,).")
      .def(
          "expect",
          [](TreeGrower& self, std::size_t n_trees) {
            constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
            self.trees.expected = std::min(n_trees, most);
          },
          "n_trees"_a, "Reserves memory for the expected number of trees.")
      .def("drop_last", &drop_last, "Removes the last tree.")
      .def(
          "stop", [](TreeGrower& self) { self.stopped = true; },
          "Makes the calls of other threads, and all later ones, fail: only the main thread of "
          "Python is told of Ctrl-C.")
      .def("trees", &trees, "All trees grown so far, as flat arrays.")
      .def("restore", &restore, "arrays"_a, "Restores trees from the arrays of `trees`.");
  m.def("cuda_growers_that_fit", &cuda::growers_that_fit, "codes"_a, "n_rows"_a, "width"_a,
        "device"_a, "Number of growers that fit into the memory of a CUDA device; at least 1.");
  m.def(
      "needs_parts",
      [](const Array<double, nb::ndim<2>>& y, const std::string& criterion) {
        TreeParams params;
        params.criterion = criterion_of(criterion);
        GilRelease release;
        return y.shape(0) > 0 && needs_parts({y.data(), y.size()}, y.shape(1), params);
      },
      "y"_a, "criterion"_a,
      "Whether one scale is too coarse for a tree of y (n_rows, width): see `grow_in_parts`.");
  bind_added_trees(grower);
  bind_rounds(m);
  bind_gathering(m);
}

}  // namespace arboost::bindings
