// Checks, sums and edits of grown trees.
#include "grow/trees/grown_trees.h"

#include <algorithm>

#include "base/require.h"
#include "grow/trees/tree_walk.h"

namespace arboost {

void GrownTrees::validate(const Codes& codes) const {
  const std::size_t n = feature.size();
  require(!tree_start.empty() && tree_start.front() == 0, "trees that do not start at 0");
  require(tree_start.back() == static_cast<std::int64_t>(n), "trees that do not hold all nodes");
  require(bin.size() == n && left.size() == n && default_left.size() == n && set.size() == n &&
              gain.size() == n && cover.size() == n && value.size() == n * width,
          "arrays of trees of different lengths");
  std::int32_t n_sets = 0;
  for (std::size_t t = 0; t < n_trees(); ++t) {
    require(tree_start[t] < tree_start[t + 1] && tree_start[t + 1] <= tree_start.back(),
            "a tree without nodes, or outside the arrays");
    const auto size = static_cast<std::int64_t>(n_nodes(t));
    for (std::int64_t i = 0; i < size; ++i) {
      const std::size_t at = first(t) + static_cast<std::size_t>(i);
      const std::int64_t child = left[at];
      require(child == 0 || (child > i && child + 1 < size), "a child outside its tree");
      require(feature[at] >= 0 && static_cast<std::size_t>(feature[at]) < codes.n_features &&
                  bin[at] >= 0,
              "a split on an unknown feature");
      const bool by_set = child != 0 && codes.has_levels(static_cast<std::size_t>(feature[at]));
      require(set[at] == (by_set ? n_sets++ : -1), "sets that do not fit the splits of categories");
    }
  }
  require(sets.size() == static_cast<std::size_t>(n_sets), "level sets that belong to no split");
}

// Reserves once: growth by doubling would copy all nodes, and fresh memory is slow.
void GrownTrees::make_room(std::size_t n) {
  const std::size_t used = feature.size(), needed = used + n;
  if (needed <= feature.capacity() || expected <= n_trees() + 1) return;
  constexpr double margin = 1.05;
  const double mean = static_cast<double>(needed) / static_cast<double>(n_trees() + 1);
  const auto size = static_cast<std::size_t>(mean * static_cast<double>(expected) * margin);
  each_array([size](auto& array, std::size_t numbers) { array.reserve(size * numbers); });
}

void GrownTrees::drop_last() {
  const std::size_t start = first(n_trees() - 1);
  const auto own_sets = std::count_if(set.begin() + static_cast<std::ptrdiff_t>(start), set.end(),
                                      [](std::int32_t which) { return which >= 0; });
  keep(n_trees() - 1, sets.size() - static_cast<std::size_t>(own_sets));
}

void GrownTrees::keep(std::size_t n_trees, std::size_t n_sets) {
  tree_start.resize(n_trees + 1);
  sets.resize(n_sets);
  resize(first(n_trees));
}

void GrownTrees::walk(std::size_t tree, const Codes& codes, const TreeRows& rows, Team& team,
                      UseLeaves use) const {
  codes.fetch();
  TreeWalk(*this, tree, codes, rows).run(team, use);
}

void GrownTrees::add(std::size_t tree, const Codes& codes, const TreeRows& rows, double factor,
                     ScoreRows scores, Team& team) const {
  std::vector<double> scaled(values(tree), values(tree) + n_nodes(tree) * width);
  for (double& v : scaled) v *= factor;
  walk(tree, codes, rows, team,
       [&](std::size_t begin, std::size_t end, const std::uint32_t* leaves) {
         for (std::size_t i = begin; i < end; ++i) {
           const double* v = scaled.data() + leaves[i - begin] * width;
           double* score = scores.scores + i * scores.stride;
           for (std::size_t k = 0; k < width; ++k) score[k] += v[k];
         }
       });
}

void GrownTrees::add_leaves(std::size_t tree, std::span<const std::uint32_t> leaves, double factor,
                            ScoreRows scores, Team& team) const {
  constexpr std::size_t chunk_rows = 16384;
  const double* of_tree = values(tree);
  team.for_chunks(0, leaves.size(), chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t k = 0; k < width; ++k)
        scores.scores[i * scores.stride + k] += factor * of_tree[leaves[i] * width + k];
  });
}

void GrownTrees::set_values(std::size_t tree, std::span<const double> new_values,
                            std::span<const std::int8_t> monotone) {
  const std::size_t start = first(tree), n = n_nodes(tree);
  double* v = values(tree);
  std::copy(new_values.begin(), new_values.end(), v);
  if (monotone.empty()) return;
  // Nodes below node i, in order: a subtree is closed under children, which come after parents.
  const auto leaves_below = [&](std::size_t root) {
    std::vector<std::size_t> open{root}, leaves;
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      const auto child = static_cast<std::size_t>(left[start + i]);
      if (child == 0)
        leaves.push_back(i);
      else
        open.insert(open.end(), {child, child + 1});
    }
    return leaves;
  };
  // From the root down: changes below a split stay within that subtree's range of values, so they
  // preserve the order established above.
  for (std::size_t i = 0; i < n; ++i) {
    const auto child = static_cast<std::size_t>(left[start + i]);
    const int direction = monotone[static_cast<std::size_t>(feature[start + i])];
    if (child == 0 || direction == 0) continue;
    const auto low = leaves_below(direction > 0 ? child : child + 1);
    const auto high = leaves_below(direction > 0 ? child + 1 : child);
    double most = v[low.front()], least = v[high.front()];
    for (const std::size_t leaf : low) most = std::max(most, v[leaf]);
    for (const std::size_t leaf : high) least = std::min(least, v[leaf]);
    if (most <= least) continue;
    const double middle = least + (most - least) / 2;
    for (const std::size_t leaf : low) v[leaf] = std::min(v[leaf], middle);
    for (const std::size_t leaf : high) v[leaf] = std::max(v[leaf], middle);
  }
}

}  // namespace arboost
