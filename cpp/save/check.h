// Validation: untrusted arrays of trees -> an error, or trees that are safe to walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tree/forest.h"

namespace arboost {

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
