// Linear in nodes and in points of the splits on the grid; single-threaded.
#include "explain/regions.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <limits>

#include "base/require.h"

namespace arboost {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t unused = GridForest::column_bits;
constexpr std::size_t word_bits = 64;

class Maker {
 public:
  Maker(GridForest& made, std::size_t n_columns, std::size_t n_outputs)
      : made_(made),
        forest_(made.forest),
        n_columns_(n_columns),
        n_outputs_(n_outputs),
        column_of_(2 * n_columns, unused) {
    for (const std::size_t axis : {0, 1}) words_[axis] = (made.n_points(axis) + 63) / word_bits;
    stride_ = words_[0] + words_[1];
    left_.resize(stride_);
    // The whole grid.
    masks_.assign(stride_, 0);
    for (const std::size_t axis : {0, 1})
      for (std::size_t i = 0; i < made.n_points(axis); ++i) set_bit(mask(0, axis), i);
    n_regions_ = 1;
  }

  void make() {
    const std::size_t n_trees = forest_.output.size(), n_nodes = forest_.left.size();
    require(forest_.tree_start.size() == n_trees + 1, "trees out of range");
    made_.nodes.resize(n_nodes);
    made_.region.assign(n_nodes, GridForest::nowhere);
    for (std::size_t t = 0; t < n_trees; ++t) {
      const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
      const auto last = static_cast<std::size_t>(forest_.tree_start[t + 1]);
      require(first < last && last <= n_nodes, "a tree without nodes");
      require(static_cast<std::size_t>(forest_.output[t]) < n_outputs_,
              "a tree for an unknown output");
      made_.region[first] = 0;
      depth_.assign(last - first, 0);
      for (std::size_t i = 0; i < last - first; ++i) make_node(first, i, last - first);
      made_.depth.push_back(*std::max_element(depth_.begin(), depth_.end()));
    }
    // The index of the leaves' column is known only after all used columns.
    for (GridForest::Node& node : made_.nodes)
      if ((node.column & GridForest::column_bits) == unused)
        node.column ^= unused ^ static_cast<std::uint32_t>(made_.columns.size());
    for (std::size_t r = 0; r < n_regions_; ++r)
      made_.regions.push_back({{part_of(r, 0), part_of(r, 1)}});
  }

 private:
  static void set_bit(std::uint64_t* words, std::size_t i) {
    words[i / word_bits] |= std::uint64_t{1} << (i % word_bits);
  }
  std::uint64_t* mask(std::size_t region, std::size_t axis) {
    return masks_.data() + region * stride_ + (axis == 0 ? 0 : words_[0]);
  }

  void make_node(std::size_t first, std::size_t i, std::size_t size) {
    const std::size_t node = first + i;
    GridForest::Node& made = made_.nodes[node];
    made = {infinity, static_cast<std::uint32_t>(i), unused};
    if (forest_.left[node] == 0) {
      if (forest_.width == 1) made.threshold = forest_.value[node];
      if (made_.region[node] == 0) made.column |= GridForest::is_plain;
      return;
    }
    const auto left = static_cast<std::size_t>(forest_.left[node]);
    require(left > i && left < size - 1, "a child outside its tree");
    const auto feature = static_cast<std::size_t>(forest_.feature[node]);
    require(feature < n_columns_, "a split on an unknown column");
    const bool has_set = forest_.level_set[node] >= 0;
    if (has_set)
      require(static_cast<std::size_t>(forest_.level_set[node]) < forest_.level_sets.size() / 4,
              "an unknown set of levels");
    const std::int32_t region = made_.region[node];
    if (region == GridForest::nowhere) return;  // so are its children
    std::int32_t* children = made_.region.data() + first + left;
    depth_[left] = depth_[left + 1] = depth_[i] + 1;
    for (std::size_t axis = 0; axis < made_.grid.size(); ++axis)
      if (made_.grid[axis].feature == feature)
        return divide(node, axis, static_cast<std::uint32_t>(left), children);
    children[0] = children[1] = region;
    made.next = static_cast<std::uint32_t>(left);
    made.column = column_of(feature, has_set);
    if (has_set) {
      made.threshold = std::bit_cast<double>(keep_set(node));
      made.column |= GridForest::by_set;
    } else {
      made.threshold = forest_.threshold[node];
      if (!forest_.default_left[node]) made.column |= GridForest::missing_right;
    }
  }

  // A split on an axis of the grid.
  void divide(std::size_t node, std::size_t axis, std::uint32_t left, std::int32_t* children) {
    const auto region = static_cast<std::size_t>(made_.region[node]);
    const std::span<const double> values = made_.grid[axis].values;
    std::fill_n(left_.begin(), words_[axis], 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (goes_left(node, values[i])) set_bit(left_.data(), i);
    std::uint64_t some_left = 0, some_right = 0;
    for (std::size_t w = 0; w < words_[axis]; ++w) {
      some_left |= mask(region, axis)[w] & left_[w];
      some_right |= mask(region, axis)[w] & ~left_[w];
    }
    GridForest::Node& made = made_.nodes[node];
    if (some_left == 0 || some_right == 0) {
      const std::uint32_t side = some_left == 0;
      made.next = left + side;
      children[side] = made_.region[node];
      return;
    }
    for (const std::size_t side : {0, 1}) {
      masks_.resize(masks_.size() + stride_);
      std::copy_n(mask(region, 0), stride_, mask(n_regions_, 0));
      for (std::size_t w = 0; w < words_[axis]; ++w)
        mask(n_regions_, axis)[w] &= side == 0 ? left_[w] : ~left_[w];
      children[side] = static_cast<std::int32_t>(n_regions_++);
    }
  }

  bool goes_left(std::size_t node, double value) const {
    if (forest_.level_set[node] < 0)
      return std::isnan(value) ? forest_.default_left[node] != 0 : value <= forest_.threshold[node];
    return holds(forest_.left_codes(node), static_cast<std::uint32_t>(level_or_missing(value)));
  }

  std::uint64_t keep_set(std::size_t node) {
    made_.sets.push_back(forest_.left_codes(node));
    return made_.sets.size() - 1;
  }

  std::uint32_t column_of(std::size_t feature, bool of_codes) {
    std::uint32_t& column = column_of_[of_codes ? n_columns_ + feature : feature];
    if (column == unused) {
      column = static_cast<std::uint32_t>(made_.columns.size());
      made_.columns.push_back({feature, of_codes});
    }
    return column;
  }

  Part part_of(std::size_t region, std::size_t axis) {
    const std::size_t n = made_.n_points(axis);
    const std::uint64_t* words = mask(region, axis);
    Part part{static_cast<std::uint32_t>(made_.runs.size()), 0, false};
    for (std::size_t i = 0; i < n;) {
      const bool inside = (words[i / word_bits] >> (i % word_bits) & 1) != 0;
      const std::size_t begin = i++;
      if (!inside) continue;
      while (i < n && (words[i / word_bits] >> (i % word_bits) & 1) != 0) ++i;
      made_.runs.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(i)});
    }
    part.end = static_cast<std::uint32_t>(made_.runs.size());
    part.is_all =
        part.end == part.begin + 1 && made_.runs.back().begin == 0 && made_.runs.back().end == n;
    return part;
  }

  GridForest& made_;
  const Forest& forest_;
  std::size_t n_columns_, n_outputs_;
  std::vector<std::uint32_t> column_of_;  // of each feature's values, then of its codes
  std::size_t words_[2], stride_;         // of a mask of one axis, and of both
  std::vector<std::uint64_t> masks_;      // of each region: a bit for each point of either axis
  std::size_t n_regions_ = 0;
  std::vector<std::uint64_t> left_;  // points of an axis that go left
  std::vector<int> depth_;           // of the tree's nodes
};

}  // namespace

GridForest::GridForest(const Forest& trees, Grid axes, std::size_t n_columns, std::size_t n_outputs)
    : forest(trees), grid(axes) {
  require(grid.size() == 1 || grid.size() == 2, "the grid must have one or two features");
  for (const Axis& axis : grid) {
    require(axis.feature < n_columns, "a feature of the grid is unknown");
    require(!axis.values.empty() && axis.values.size() < column_bits,
            "an axis of the grid has no points, or too many");
  }
  require(grid.size() == 1 || grid[0].feature != grid[1].feature,
          "the two features of the grid are the same");
  require(forest.width == 1 || forest.width == n_outputs, "leaves that do not fit the outputs");
  Maker(*this, n_columns, n_outputs).make();
}

}  // namespace arboost
