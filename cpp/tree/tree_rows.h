// The rows of a tree: their numbering, and the integers that each adds to the sums of its node.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace arboost {

// Rows [begin, end) of a table.
struct TableSpan {
  std::size_t begin, end;
};

// The rows of a tree, by number i: a training row's position, and its row in the table of codes.
struct TreeRows {
  std::size_t n;
  const std::uint32_t* positions;  // [n], ascending; null: row i is at position i
  const RowId* table_rows;         // by position; null: position p is row p of the table

  bool is_all() const { return positions == nullptr && table_rows == nullptr; }
  std::uint32_t position(std::size_t i) const {
    return positions == nullptr ? static_cast<std::uint32_t>(i) : positions[i];
  }
  RowId row(std::size_t i) const {
    return table_rows == nullptr ? position(i) : table_rows[position(i)];
  }
  // For rows that ascend: the part of the table that holds them, and the number of rows before a
  // row of the table.
  TableSpan span() const {
    return n == 0 ? TableSpan{0, 0} : TableSpan{row(0), std::size_t{row(n - 1)} + 1};
  }
  std::size_t first_from(std::size_t table_row) const {
    std::size_t begin = 0, end = n;
    while (begin < end) {
      const std::size_t middle = begin + (end - begin) / 2;
      if (row(middle) < table_row)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
};

// A row in the partition of a tree: row id in the low 32 bits; in the high 32 bits its narrow
// gradient pair (grow/kernels/quantise.h), unused where wide pairs are looked up by row id.
using Element = std::uint64_t;

static inline RowId row_of(Element e) {
  return static_cast<RowId>(e);
}

// One packed sum: gradient in the high 32 bits (signed), hessian in the low 32 bits (never
// negative). As g * 2^32 + h it adds and subtracts as one int64, exactly, while |sum g| and sum h
// stay below 2^31; the scale of a round is chosen so that they do over all rows.
using PackedSum = std::int64_t;

static inline PackedSum pack(std::int64_t g, std::int64_t h) {
  return g * (std::int64_t{1} << 32) + h;
}
static inline std::int32_t sum_g(PackedSum s) {
  return static_cast<std::int32_t>(s >> 32);
}
static inline std::int32_t sum_h(PackedSum s) {
  return static_cast<std::int32_t>(s & 0xffffffff);
}

// Contribution of a row to its histogram slots: `channels` int64 numbers, the packed sum of each
// output and, if `counted`, the number of rows as the last channel.
struct RowSums {
  const PackedSum* wide;  // [n_rows][outputs]; null: one output, narrow pairs inside the elements
  int outputs;
  bool counted;
  int channels() const { return outputs + (counted ? 1 : 0); }
};

}  // namespace arboost
