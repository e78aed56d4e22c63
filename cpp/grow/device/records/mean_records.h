// Records of sums by leaf whose rows are added up in their order (grow/device/device_means.h).
#pragma once

#include <cstdint>

#include "tree/tree_rows.h"

namespace arboost::cuda {

constexpr std::uint32_t no_number = 0xffffffff;  // of rows that a tree was not grown on
constexpr std::uint32_t n_digits = 256;          // of a pass of the sort

// One pass of a stable sort of a tree's rows by leaf: by one byte of the leaf. An item is the leaf,
// and below it the position of the training row.
struct LeafSort {
  const Element* from;  // null in the first pass: training rows in their order
  const std::uint32_t *leaf_of_row, *number_of_row;  // by table row; no numbers: all rows are drawn
  const RowId* table_rows;                           // by position; null: the position
  std::uint32_t n, shift;
  Element* to;
  std::uint32_t *counts, *totals;  // [digit][block], [digit]
};

// Sorted rows of a leaf.
struct LeafRange {
  std::uint32_t begin, end;
};

// Targets of the training rows, and their weights.
struct TargetColumns {
  const double* y;       // [position][width]
  const double* weight;  // by position; null: 1
  const float* counts;   // by number in the sample; null: 1
  const std::uint32_t* number_of_row;
  const RowId* table_rows;
  std::uint32_t width;
};

}  // namespace arboost::cuda
