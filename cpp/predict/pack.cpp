// Trees -> packed nodes, with all checks. 5 to 10 ns a node; single-threaded.
#include "predict/pack.h"

#include <algorithm>
#include <bit>      // bit_cast
#include <utility>  // move

#include "base/require.h"

namespace arboost {
namespace {

class Packer {
 public:
  Packer(const Forest& forest, std::size_t n_columns, std::size_t n_outputs)
      : forest_(forest),
        n_outputs_(n_outputs),
        n_columns_(n_columns),
        column_of_(2 * n_columns, unused) {}

  Packed pack(TreeRange range) {
    const auto first = static_cast<std::size_t>(forest_.tree_start[range.begin]);
    const auto last = static_cast<std::size_t>(forest_.tree_start[range.end]);
    require(first <= last && last <= forest_.left.size(), "trees outside the nodes");
    packed_.nodes.resize(last - first);
    for (std::size_t t = range.begin; t < range.end; ++t) pack_tree(t, first);
    // The index of the leaves' column is known only after all used columns.
    for (Node& node : packed_.nodes)
      if (node.column == unused) node.column = static_cast<std::uint32_t>(packed_.columns.size());
    return std::move(packed_);
  }

 private:
  static constexpr std::uint32_t unused = column_bits;

  void pack_tree(std::size_t t, std::size_t origin) {
    const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
    const auto last = static_cast<std::size_t>(forest_.tree_start[t + 1]);
    require(origin <= first && first < last && last <= origin + packed_.nodes.size(),
            "a tree without nodes");
    const auto output = static_cast<std::uint32_t>(forest_.output[t]);
    require(output < n_outputs_, "a tree for an unknown output");
    const std::size_t size = last - first;
    depth_.assign(size, 0);
    int depth = 0;
    for (std::size_t i = 0; i < size; ++i) {
      depth = std::max(depth, depth_[i]);
      packed_.nodes[first - origin + i] = pack_node(first + i, i, size);
    }
    packed_.trees.push_back({first - origin, first, depth, output});
  }

  Node pack_node(std::size_t node, std::size_t i, std::size_t size) {
    if (forest_.left[node] == 0) {
      const double value = forest_.width == 1 ? forest_.value[node] : 0.0;
      return {value, static_cast<std::uint32_t>(i), unused};
    }
    const auto left = static_cast<std::size_t>(forest_.left[node]);
    require(left > i && left < size - 1, "a child outside its tree");
    depth_[left] = depth_[left + 1] = depth_[i] + 1;
    const bool has_set = forest_.level_set[node] >= 0;
    const std::uint32_t column =
        column_of(static_cast<std::size_t>(forest_.feature[node]), has_set);
    const auto next = static_cast<std::uint32_t>(left);
    if (has_set) return {std::bit_cast<double>(pack_set(node)), next, column | by_set};
    const std::uint32_t flag = forest_.default_left[node] ? 0 : missing_right;
    return {forest_.threshold[node], next, column | flag};
  }

  std::uint64_t pack_set(std::size_t node) {
    const auto number = static_cast<std::size_t>(forest_.level_set[node]);
    require(number < forest_.level_sets.size() / 4, "an unknown set of levels");
    packed_.sets.push_back(forest_.left_codes(node));
    return packed_.sets.size() - 1;
  }

  std::uint32_t column_of(std::size_t feature, bool of_codes) {
    require(feature < n_columns_, "a split on an unknown column");
    std::uint32_t& column = column_of_[of_codes ? n_columns_ + feature : feature];
    if (column == unused) {
      column = static_cast<std::uint32_t>(packed_.columns.size());
      packed_.columns.push_back({feature, of_codes});
    }
    return column;
  }

  const Forest& forest_;
  std::size_t n_outputs_, n_columns_;
  std::vector<std::uint32_t> column_of_;  // block column of each feature's values, then codes
  std::vector<int> depth_;                // of the tree's nodes
  Packed packed_;
};

}  // namespace

Packed pack_trees(const Forest& forest, TreeRange range, std::size_t n_columns,
                  std::size_t n_outputs) {
  require(range.begin <= range.end && range.end < forest.tree_start.size(), "trees out of range");
  return Packer(forest, n_columns, n_outputs).pack(range);
}

}  // namespace arboost
