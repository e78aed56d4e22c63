// Values and weights -> weighted median of each row; trees, weights and a table -> weighted median
// of the trees' values.
//
// The weighted median of a row is its smallest value at which the weights, cumulated in the order
// of the values (of equal ones the first comes first), reach half of their total. NaN values are
// left out; a row of NaN alone has the median NaN.
//
// Quantile regression forests: training rows in the leaves that a row reaches -> quantiles of their
// targets.
//
// Each tree distributes a total share of 1 over the training rows of the leaf, equally or by
// weight, and all trees count equally. The quantile q is the smallest value at which the cumulative
// share over all trees reaches q of the total (Meinshausen 2006).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// Values of row i at data + i * row_stride, one every column_stride.
struct ValueRows {
  const double* data;
  std::size_t n_rows;
  std::ptrdiff_t row_stride, column_stride;
};

// out[row] = the median of as many values as there are weights.
// Throws std::invalid_argument where there is no weight, or one that is negative or not finite.
void weighted_median(const ValueRows& values, std::span<const double> weights, Team& team,
                     double* out);

// scores[row] += the weighted median of the first trees' values, one tree a weight, with memory for
// the values of a few rows at a time. Throws as `weighted_median` and `traverse` do.
void traverse_median(const Columns& table, const Forest& forest, std::span<const double> weights,
                     Team& team, double* scores);

// Units of a tree's total share: shares are integers, so sums do not depend on the order.
constexpr std::int64_t share_units = std::int64_t{1} << 44;

// Views of the arrays of arboost.trees.leaf_distributions.LeafDistributions. The rows in node i of
// the forest are at start[i] to start[i + 1].
struct LeafDistributions {
  std::span<const std::int64_t> tree_start;  // [n_trees + 1], as in a forest
  std::span<const std::int64_t> start;       // [n_nodes + 1]
  std::span<const std::int32_t> rank;        // of the rows' values, ascending in each node
  std::span<const std::int64_t> upto;        // shares up to and with each row; empty: all are equal
  std::span<const double> values;            // by rank
};

// Throws std::invalid_argument if an entry leads outside the arrays, or a share is invalid.
void validate(const LeafDistributions& distributions);

// out[row][i] = quantile number i; NaN for rows whose leaves are all empty. The distributions must
// be valid. The leaves of a few rows at a time are in memory.
void traverse_quantiles(const Columns& table, const Forest& forest,
                        const LeafDistributions& distributions, std::span<const double> quantiles,
                        Team& team, double* out);

}  // namespace arboost
