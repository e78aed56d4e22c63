// Bindings of grown trees: as arrays, added to scores, gathered into a forest, and pruned.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "bindings/common.h"
#include "bindings/tree_grower.h"
#include "grow/shards/shared_walk.h"
#include "grow/trees/gather.h"
#include "grow/trees/prune.h"

namespace arboost::bindings {
namespace {

// The arrays of a forest, each with its name.
template <class Trees, class Use>
void each_array(Trees& trees, Use use) {
  use("tree_start", trees.tree_start);
  use("feature", trees.feature);
  use("bin", trees.bin);
  use("left", trees.left);
  use("default_left", trees.default_left);
  use("set", trees.set);
  use("value", trees.value);
  use("gain", trees.gain);
  use("cover", trees.cover);
}

// Sets of levels, four words each.
nb::object to_numpy_sets(const std::vector<CodeSet>& sets) {
  std::vector<std::uint64_t> words;
  for (const CodeSet& set : sets) words.insert(words.end(), set.words, set.words + 4);
  return nb::cast(to_numpy<2>(std::move(words), {sets.size(), 4}));
}

// An uninitialised array.
template <class T, int dimensions = 1>
T* new_array(nb::dict& result, const char* name, std::initializer_list<std::size_t> shape) {
  std::size_t size = 1;
  for (const std::size_t n : shape) size *= n;
  auto data = std::make_unique_for_overwrite<T[]>(size);
  T* first = data.get();
  nb::capsule owner(data.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  result[name] = Owned<T, dimensions>(first, shape, owner);
  return first;
}

std::vector<TreeRef> trees_of(const std::vector<const TreeGrower*>& growers,
                              const Vector<std::int64_t>& order) {
  std::vector<TreeRef> all, ordered;
  for (const TreeGrower* grower : growers) {
    require(grower != nullptr, "a grower is None");
    require(grower->trees.width == growers.front()->trees.width &&
                grower->codes.n_features == growers.front()->codes.n_features,
            "the growers differ in width or in their number of features");
    for (std::size_t t = 0; t < grower->trees.n_trees(); ++t) all.push_back({&grower->trees, t});
  }
  for (std::size_t t = 0; t < order.shape(0); ++t) {
    const auto position = static_cast<std::size_t>(order.data()[t]);
    require(position < all.size(), "the order names an unknown tree");
    ordered.push_back(all[position]);
  }
  return ordered;
}

nb::dict gather_forest(const std::vector<const TreeGrower*>& growers,
                       const Vector<std::int64_t>& order, const std::vector<Vector<double>>& edges,
                       int n_threads) {
  require(!growers.empty(), "there are no growers");
  const std::vector<TreeRef> refs = trees_of(growers, order);
  require(edges.size() == growers.front()->codes.n_features,
          "the edges and the growers differ in their number of features");
  const auto spans = spans_of(edges);
  std::vector<std::int64_t> starts = tree_starts(refs);
  const auto n = static_cast<std::size_t>(starts.back());
  const std::size_t width = growers.front()->trees.width;
  nb::dict result;
  result["tree_start"] = to_numpy(std::move(starts));
  const GatheredNodes arrays{.feature = new_array<std::int32_t>(result, "feature", {n}),
                             .threshold = new_array<double>(result, "threshold", {n}),
                             .left = new_array<std::int32_t>(result, "left", {n}),
                             .default_left = new_array<std::uint8_t>(result, "default_left", {n}),
                             .value = new_array<double, 2>(result, "value", {n, width}),
                             .gain = new_array<double>(result, "gain", {n}),
                             .cover = new_array<double>(result, "cover", {n}),
                             .set = new_array<std::int32_t>(result, "set", {n})};
  result["sets"] = to_numpy_sets(
      with_team(n, n_threads, [&](Team& team) { return gather_trees(refs, spans, team, arrays); }));
  return result;
}

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

using Order = std::tuple<Owned<std::int32_t>, Owned<double>, Owned<double>>;

Order order_of(const Vector<std::int32_t>& left, const Vector<double>& decrease) {
  PruneOrder order = without_gil([&] { return prune_order(span_of(left), span_of(decrease)); });
  return {to_numpy(std::move(order.node)), to_numpy(std::move(order.alpha)),
          to_numpy(std::move(order.kept))};
}

}  // namespace

nb::dict trees(const TreeGrower& self) {
  nb::dict result;
  each_array(self.trees,
             [&](const char* name, const auto& array) { result[name] = to_numpy(array); });
  result["sets"] = to_numpy_sets(self.trees.sets);
  return result;
}

void restore(TreeGrower& self, const nb::dict& arrays) {
  GrownTrees trees(self.trees.width);
  each_array(trees, [&](const char* name, auto& array) {
    using T = typename std::remove_reference_t<decltype(array)>::value_type;
    const auto given = to_array<Vector<T>>(arrays[name], name);
    array.assign(given.data(), given.data() + given.shape(0));
  });
  const auto words = to_array<Array<std::uint64_t, nb::ndim<2>>>(arrays["sets"], "sets");
  require(words.shape(1) == 4, "level sets must have four words each");
  trees.sets.resize(words.shape(0));
  for (std::size_t i = 0; i < words.size(); ++i) trees.sets[i / 4].words[i % 4] = words.data()[i];
  trees.validate(self.codes);
  self.trees = std::move(trees);
  self.has_leaves = false;
}

nb::dict last_tree(const TreeGrower& self) {
  const GrownTrees& trees = self.trees;
  const std::size_t tree = self.last(), start = trees.first(tree), n = trees.n_nodes(tree);
  const double* value = trees.values(tree);
  const double* cover = trees.cover.data() + start;
  const std::int32_t* left = trees.left.data() + start;
  nb::dict result;
  result["value"] =
      to_numpy<2>(std::vector<double>(value, value + n * trees.width), {n, trees.width});
  result["cover"] = to_numpy(std::vector<double>(cover, cover + n));
  result["left"] = to_numpy(std::vector<std::int32_t>(left, left + n));
  return result;
}

void bind_gathering(nb::module_& m) {
  m.def("gather_forest", &gather_forest, "growers"_a, "order"_a, "edges"_a, "n_threads"_a,
        "Trees of growers as flat arrays, in the order of the numbers given: those of the first "
        "grower are numbered first, then those of the second ...");
  m.def("prune_order", &order_of, "left"_a, "decrease"_a,
        "Nodes of a tree in the order in which they become leaves, the alpha of each, and the sum "
        "of the decreases of all splits before each step and after the last.");
}

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
