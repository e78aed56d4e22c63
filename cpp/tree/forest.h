// Views of a model's trees, and of the leaves that rows reach in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace arboost {

// Views of the arrays of arboost.models.Forest: nodes of tree t at tree_start[t] to
// tree_start[t + 1], left = index of the left child in its tree (right = left + 1), 0 for a leaf.
struct Forest {
  std::span<const std::int64_t> tree_start;  // [n_trees + 1]
  std::span<const std::int32_t> feature;     // [n_nodes], as the next four
  std::span<const double> threshold;
  std::span<const std::int32_t> left;
  std::span<const std::uint8_t> default_left;
  std::span<const std::int32_t> level_set;    // which set of levels goes left; -1: by threshold
  std::span<const std::uint64_t> level_sets;  // [n_sets][4]: level c is bit c % 64 of word c / 64
  std::span<const double> value;              // [n_nodes][width]
  std::span<const std::int32_t> output;       // [n_trees]
  std::size_t width;                          // 1, or the number of outputs
};

struct TreeRange {
  std::size_t begin, end;
};

// Leaves of some rows: leaf[tree * stride + row - begin] is a node of its tree.
struct LeafBlock {
  const std::uint32_t* leaf;
  std::size_t stride;
  std::size_t begin, end;  // rows
};

}  // namespace arboost
