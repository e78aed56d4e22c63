// Ranges of nodes among the elements of a tree, one in each stretch of the table's rows.
//
// Rows of a stretch are in memory together while they are divided. Stretches are a few parts of
// each window of the table, large enough for the kernels, small enough for the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grow/trees/grow_node.h"
#include "tree/tree_rows.h"

namespace arboost {

class Stretches {
 public:
  // Elements of a node in one stretch.
  struct Range {
    std::uint32_t stretch, begin, end;
    std::size_t size() const { return end - begin; }
  };

  // Of a table of n_rows rows that are read in windows of window_rows.
  Stretches(std::size_t n_rows, std::size_t window_rows)
      : window_rows_(std::max<std::size_t>(1, window_rows)),
        per_window_((window_rows_ + most_rows - 1) / most_rows),
        rows_((window_rows_ + per_window_ - 1) / per_window_),
        size_((n_rows + window_rows_ - 1) / window_rows_ * per_window_) {}

  std::size_t rows() const { return rows_; }              // of a stretch, at most
  std::size_t per_window() const { return per_window_; }  // stretches of a window

  // The root has the rows of the tree, which ascend.
  void open_root(const GrowNode& root, const TreeRows& tree_rows) {
    ranges_.clear();
    ranges_.resize(root.number + 1);
    std::uint32_t begin = 0;
    for (std::size_t s = 0; s < size_; ++s) {
      const auto end = static_cast<std::uint32_t>(
          s + 1 < size_ ? tree_rows.first_from(first_row(s + 1)) : tree_rows.n);
      if (begin < end) ranges_[root.number].push_back({static_cast<std::uint32_t>(s), begin, end});
      begin = end;
    }
  }

  // The children have the ranges of the node until these are divided, window by window.
  void open_children(const GrowNode& node) {
    ranges_.resize(std::max({ranges_.size(), node.left->number + 1, node.right->number + 1}));
    ranges_[node.left->number] = ranges_[node.right->number] = ranges_[node.number];
  }
  // The left child has the first n_left elements of range number `number` of the node.
  void divide(const GrowNode& node, std::size_t number, std::size_t n_left) {
    Range& left = ranges_[node.left->number][number];
    ranges_[node.right->number][number].begin = left.end =
        left.begin + static_cast<std::uint32_t>(n_left);
  }
  // Nodes that are divided have no ranges, and their children none that are empty: those of all
  // nodes are at most as many as the rows.
  void close(const GrowNode& node) {
    ranges_[node.number] = {};
    for (const GrowNode* child : {node.left, node.right}) {
      std::vector<Range>& ranges = ranges_[child->number];
      std::erase_if(ranges, [](const Range& range) { return range.size() == 0; });
      ranges.shrink_to_fit();
    }
  }

  // Of all stretches, or of those of the window from this row on; ascending.
  std::span<const Range> of(const GrowNode& node) const { return ranges_[node.number]; }
  std::span<const Range> of(const GrowNode& node, std::size_t window_begin) const {
    const std::span<const Range> all = of(node);
    const std::size_t first = window_begin / window_rows_ * per_window_;
    const auto from = [&](std::size_t stretch) {
      return std::partition_point(all.begin(), all.end(),
                                  [=](const Range& range) { return range.stretch < stretch; });
    };
    return {from(first), from(first + per_window_)};
  }
  // Number of a range of the node.
  std::size_t number_of(const GrowNode& node, const Range& range) const {
    return static_cast<std::size_t>(&range - ranges_[node.number].data());
  }

 private:
  static constexpr std::size_t most_rows = 32768;

  std::size_t first_row(std::size_t stretch) const {
    const std::size_t window = stretch / per_window_;
    return window * window_rows_ + std::min(stretch % per_window_ * rows_, window_rows_);
  }

  std::size_t window_rows_, per_window_, rows_, size_;
  std::vector<std::vector<Range>> ranges_;  // by node
};

}  // namespace arboost
