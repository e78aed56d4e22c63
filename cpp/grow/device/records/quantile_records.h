// Records of the quantiles of residuals in the leaves of a tree.
#pragma once

#include <cstdint>

#include "grow/device/records/device_records.h"

namespace arboost::cuda {

// Rows with the scores of one output at scores[position * outputs].
struct ResidualRows {
  const double* y;
  const double* weight;  // null: all 1
  const double* scores;
  std::uint64_t outputs;
  RowNumbers rows;
  std::uint32_t n;
  const std::uint32_t* leaf_of_row;  // null: all are in leaf 0
  double weight_scale;               // weights are integers in this unit
  std::uint32_t absolute;            // 1: absolute residuals
  std::uint32_t without_zeros;       // 1: residuals of 0 have no weight
};

// A residual in order-preserving bits, its leaf and its weight.
struct ResidualItem {
  std::uint64_t key;
  std::int64_t weight;
  std::uint32_t leaf;
};

// The quantile of a leaf, of which the leading bits are known.
struct LeafQuantile {
  std::uint64_t key;    // leading bits; all of them in the end
  std::uint64_t next;   // key of the next value, or the largest number
  std::int64_t total;   // weight of the leaf; 0: no rows
  std::int64_t below;   // weight of the residuals below those with these leading bits
  std::int64_t inside;  // weight of those with them
};

// The statistic of a leaf: its quantile at alpha; with delta, the mean of the residuals around it,
// cut to +-delta, is added; 0: nothing is.
struct LeafStatistic {
  double alpha, delta;
};

}  // namespace arboost::cuda
