// Sections of a model file (models/files/packed_trees.py) -> arrays of trees; untrusted arrays of
// trees
// -> an error, or trees that are safe to walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "save/derive.h"
#include "tree/forest.h"

namespace arboost {

// Doubles in one of four encodings, recognised by the parts that are present.
struct DoublesSection {
  enum class Form : std::uint8_t { as_they_are, whole, table, scaled } form;
  std::span<const std::uint8_t> packed;  // of all forms but the first
  std::span<const double> numbers;       // as they are, or the table
};

// Integers of the splits and of the leaves.
struct NodeBits {
  std::span<const std::uint8_t> of_splits, of_leaves;
};

struct ForestSections {
  std::span<const std::uint32_t> splits;  // [n_trees]
  std::span<const std::uint8_t> structure;
  bool has_order;
  std::span<const std::uint8_t> order;
  NodeBits feature, default_left, by_set;
  bool has_thresholds;  // a table of the distinct ones of each feature
  std::span<const double> thresholds;
  std::span<const std::uint32_t> thresholds_of;
  DoublesSection threshold, threshold_of_leaves;  // the first counts in the table, if there is one
  std::span<const std::uint8_t> cover, value, gain;
  DoublesSection cover_of_leaves, value_of_leaves, gain_of_leaves;
  Shrinkage shrinkage;
  std::size_t width;
};

// The arrays of arboost.models.Forest.
struct ForestVectors {
  std::vector<std::int64_t> tree_start;
  std::vector<std::int32_t> feature, left, level_set;
  std::vector<std::uint8_t> default_left;
  std::vector<double> threshold, value, gain, cover;
};

// Throws std::invalid_argument if sections are inconsistent; the resulting trees are still to be
// validated. Counts are compared with the bytes behind them before any allocation,
// so memory is at most some hundred times that of the sections. Cost: 30 ns a node.
ForestVectors read_forest(const ForestSections& sections);

struct CheckedForest {
  Forest trees;
  std::span<const double> gain, cover;        // [n_nodes]
  std::span<const std::uint8_t> categorical;  // [n_features]: split by sets; empty: not known
  std::size_t n_features, n_outputs;
};

// Throws std::invalid_argument with the defect, unless every walk from a root ends in a leaf inside
// the arrays, features exist, each is split either by level sets or by thresholds, and numbers are
// finite. The arrays must have the lengths of the structures. One pass, about 3 ns a node.
void check_forest(const CheckedForest& forest);

}  // namespace arboost
