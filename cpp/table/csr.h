// Compressed sparse rows (CSR) -> sparse columns: one counting pass and one scatter of the stored
// values.
#pragma once

#include <cstddef>
#include <span>

#include "table/columns.h"

namespace arboost {

// CSR matrix: row i holds the values from starts[i] to starts[i + 1], in the columns `indices`.
// Unvalidated.
template <class Index>
struct SparseRows {
  std::span<const Index> starts, indices;
  const Column* values;  // as many as indices
  std::size_t n_columns;
  double fill;
};

// Columns that own their row numbers and values. Values have the smallest type that holds all of
// them exactly; a constant is stored once. Throws std::invalid_argument where a place is outside
// the table or stored twice.
template <class Index>
Columns transpose(const SparseRows<Index>& rows);

}  // namespace arboost
