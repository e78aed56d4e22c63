// Ranges of nodes among the elements of a tree, one in each stretch of the table's rows.
//
// Rows of a stretch are in memory together while they are divided. Stretches are a few parts of
// each window of the table, large enough for the kernels, small enough for the cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow/trees/grow_node.h"
#include "tree/tree_rows.h"

namespace arboost {

class Stretches {
 public:
  struct Range {
    std::uint32_t begin, end;
    std::size_t size() const { return end - begin; }
  };

  // Of a table of n_rows rows that are read in windows of window_rows.
  Stretches(std::size_t n_rows, std::size_t window_rows)
      : window_rows_(std::max<std::size_t>(1, window_rows)),
        per_window_((window_rows_ + most_rows - 1) / most_rows),
        rows_((window_rows_ + per_window_ - 1) / per_window_),
        size_((n_rows + window_rows_ - 1) / window_rows_ * per_window_) {}

  std::size_t size() const { return size_; }
  std::size_t rows() const { return rows_; }              // of a stretch, at most
  std::size_t per_window() const { return per_window_; }  // stretches of a window
  std::size_t first_of(const std::size_t window_begin) const {
    return window_begin / window_rows_ * per_window_;
  }

  // The root has the rows of the tree, which ascend.
  void open_root(const GrowNode& root, const TreeRows& tree_rows) {
    ranges_.resize(size_);
    make_room(root);
    std::uint32_t begin = 0;
    for (std::size_t s = 0; s < size_; ++s) {
      const auto end = static_cast<std::uint32_t>(
          s + 1 < size_ ? tree_rows.first_from(first_row(s + 1)) : tree_rows.n);
      of(root, s) = {begin, end};
      begin = end;
    }
  }
  void make_room(const GrowNode& node) {
    ranges_.resize(std::max(ranges_.size(), (node.number + 1) * size_));
  }

  Range& of(const GrowNode& node, std::size_t stretch) {
    return ranges_[node.number * size_ + stretch];
  }
  const Range& of(const GrowNode& node, std::size_t stretch) const {
    return ranges_[node.number * size_ + stretch];
  }

 private:
  static constexpr std::size_t most_rows = 32768;

  std::size_t first_row(std::size_t stretch) const {
    const std::size_t window = stretch / per_window_;
    return window * window_rows_ + std::min(stretch % per_window_ * rows_, window_rows_);
  }

  std::size_t window_rows_, per_window_, rows_, size_;
  std::vector<Range> ranges_;  // [node][stretch]
};

}  // namespace arboost
