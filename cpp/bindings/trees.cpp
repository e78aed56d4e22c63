// Bindings of grown trees: as arrays, and gathered from several growers into a forest.

#include <memory>

#include "bindings/tree_grower.h"
#include "grow/trees/gather.h"

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
  result["sets"] = to_numpy_sets(without_gil([&] {
    Team team = team_for(n, n_threads);
    return gather_trees(refs, spans, team, arrays);
  }));
  return result;
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
}

}  // namespace arboost::bindings
