// Values and weights -> weighted median of each row; trees, weights and a table -> weighted median
// of the trees' values.
//
// The weighted median of a row is its smallest value at which the weights, cumulated in the order
// of the values (of equal ones the first comes first), reach half of their total. NaN values are
// left out; a row of NaN alone has the median NaN.
#pragma once

#include <cstddef>
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

}  // namespace arboost
