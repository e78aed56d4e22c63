// What the grower is told, and what it gives.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace arboost {

struct TreeParams {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  std::int64_t max_depth = 6;
  std::int64_t max_leaves = unlimited;
  bool best_first = false;  // else level by level
  double min_child_weight = 1;
  std::int64_t min_samples_leaf = 1;
  double gamma = 0;
  double reg_lambda = 1;
  double reg_alpha = 0;
  double max_delta_step = 0;
  // Memory for the histograms of nodes that wait to be split. What does not fit is built again from
  // the rows: slower, but the same sums and so the same tree.
  std::size_t histogram_bytes = std::size_t{512} << 20;
};

// Trees in flat arrays, one after the other. Node 0 of a tree is its root; an inner node's children
// are left and left + 1, both after their parent; a leaf has left = 0.
struct GrownTrees {
  explicit GrownTrees(std::size_t width_) : width(width_), tree_start{0} {}

  std::size_t width;                     // numbers in a leaf
  std::vector<std::int64_t> tree_start;  // [n_trees + 1]
  std::vector<std::int32_t> feature;
  std::vector<std::int32_t> bin;  // left are codes <= bin
  std::vector<std::int32_t> left;
  std::vector<std::uint8_t> default_left;
  std::vector<double> value;  // [n_nodes][width], learning rate included
  std::vector<double> gain;
  std::vector<double> cover;  // sum of hessians, mean over the outputs
};

}  // namespace arboost
