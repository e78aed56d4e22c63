// Linear in nodes; parallel over trees.
#include "grow/trees/gather.h"

#include <algorithm>
#include <limits>

namespace arboost {
namespace {

// The sets of a tree lie together, in the order of their nodes.
std::span<const CodeSet> sets_of(const TreeRef& tree) {
  if (tree.from->sets.empty()) return {};
  const std::int32_t* set = tree.from->set.data() + tree.from->first(tree.tree);
  const std::int32_t* end = set + tree.from->n_nodes(tree.tree);
  const std::int32_t* first = std::find_if(set, end, [](std::int32_t s) { return s >= 0; });
  if (first == end) return {};
  const auto n = static_cast<std::size_t>(*std::max_element(first, end) - *first + 1);
  return {tree.from->sets.data() + *first, n};
}

void gather_tree(const TreeRef& tree, std::span<const std::span<const double>> edges,
                 std::size_t at, std::int32_t first_set, const GatheredNodes& out) {
  const GrownTrees& from = *tree.from;
  const std::size_t first = from.first(tree.tree), n = from.n_nodes(tree.tree);
  const auto copy = [&](const auto& source, auto* target, std::size_t width) {
    std::copy_n(source.data() + first * width, n * width, target + at * width);
  };
  copy(from.feature, out.feature, 1);
  copy(from.left, out.left, 1);
  copy(from.default_left, out.default_left, 1);
  copy(from.value, out.value, from.width);
  copy(from.gain, out.gain, 1);
  copy(from.cover, out.cover, 1);
  std::int32_t next_set = first_set;
  for (std::size_t i = 0; i < n; ++i) {
    const bool by_set = from.set[first + i] >= 0;
    out.set[at + i] = by_set ? next_set++ : -1;
    double& threshold = out.threshold[at + i] = 0;
    if (by_set || from.left[first + i] == 0) continue;
    const auto& of_feature = edges[static_cast<std::size_t>(from.feature[first + i])];
    const auto bin = static_cast<std::size_t>(from.bin[first + i]);
    threshold = bin < of_feature.size() ? of_feature[bin] : std::numeric_limits<double>::infinity();
  }
}

}  // namespace

std::vector<std::int64_t> tree_starts(std::span<const TreeRef> trees) {
  std::vector<std::int64_t> starts{0};
  for (const TreeRef& tree : trees)
    starts.push_back(starts.back() + static_cast<std::int64_t>(tree.from->n_nodes(tree.tree)));
  return starts;
}

std::vector<CodeSet> gather_trees(std::span<const TreeRef> trees,
                                  std::span<const std::span<const double>> edges, Team& team,
                                  const GatheredNodes& out) {
  const std::vector<std::int64_t> starts = tree_starts(trees);
  std::vector<CodeSet> sets;
  std::vector<std::int32_t> first_set;
  for (const TreeRef& tree : trees) {
    first_set.push_back(static_cast<std::int32_t>(sets.size()));
    const std::span<const CodeSet> tree_sets = sets_of(tree);
    sets.insert(sets.end(), tree_sets.begin(), tree_sets.end());
  }
  team.for_chunks(0, trees.size(), 1, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t t = begin; t < end; ++t)
      gather_tree(trees[t], edges, static_cast<std::size_t>(starts[t]), first_set[t], out);
  });
  return sets;
}

}  // namespace arboost
