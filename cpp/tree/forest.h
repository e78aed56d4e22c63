// Views of a model's trees, and of the leaves that rows reach in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tree/split_rule.h"  // CodeSet

namespace arboost {

// Code of missing values and unknown levels in columns of categorical features.
constexpr std::uint32_t missing_level = 255;

// Level code of a value.
inline double level_or_missing(double x) {
  const bool known = x >= 0 && x < missing_level && x == static_cast<double>(static_cast<int>(x));
  return known ? x : missing_level;
}

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

  // Codes that go left at a split by a set of levels.
  CodeSet left_codes(std::size_t node) const {
    CodeSet set;
    const std::size_t first = 4 * static_cast<std::size_t>(level_set[node]);
    for (std::size_t w = 0; w < 4; ++w) set.words[w] = level_sets[first + w];
    put(set, missing_level, default_left[node] != 0);
    return set;
  }
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
