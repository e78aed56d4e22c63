// Compressed sparse rows -> sparse columns: one count and one scatter of the stored values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "table/columns.h"

namespace arboost {

// Stored values of row i: those from starts[i] to starts[i + 1], in the columns that `indices`
// says. Nothing of it is trusted.
template <class Index>
struct SparseRows {
  std::span<const Index> starts, indices;
  const Column* values;  // as many as indices
  std::size_t n_columns;
  double fill;
};

// Own arrays of row numbers and values. Values are kept in the smallest type that holds all of them
// exactly; one value for all of them is kept once. Throws std::invalid_argument where a place is
// outside the table or stored twice.
template <class Index>
Columns transpose(const SparseRows<Index>& rows);

}  // namespace arboost
