// Rows, codes and values of a tree, for all kernels of growth.
//
// Sums are integers, so no result depends on the order of threads.
#pragma once

#include "cuda/kernels/warps.cuh"
#include "grow/device/records/device_records.h"
#include "tree/split_rule.h"
#include "tree/tree_rows.h"

using namespace arboost;
using namespace arboost::cuda;

// The last index whose first(index) is at most `at`; first ascends and starts at 0.
template <class At, class First>
inline std::uint32_t last_from(std::uint32_t n, At at, First first) {
  std::uint32_t low = 0, high = n;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (first(middle) <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

inline std::uint32_t code_at(const DeviceCodes& codes, const NodeTest& test, RowId row,
                             bool from_rows) {
  if (test.sparse) {
    std::uint64_t low = codes.sparse_start[test.store], high = codes.sparse_start[test.store + 1];
    const std::uint64_t end = high;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (codes.sparse_rows[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == end || codes.sparse_rows[low] != row) return test.usual;
    return codes.width == 1 ? codes.sparse_codes[low]
                            : reinterpret_cast<const std::uint16_t*>(codes.sparse_codes)[low];
  }
  if (from_rows) {
    const std::uint8_t* at = codes.by_row + static_cast<std::uint64_t>(row) * codes.row_stride;
    return codes.width == 1 ? at[test.store]
                            : reinterpret_cast<const std::uint16_t*>(at)[test.store];
  }
  const std::uint64_t at = test.store * codes.n_rows + row;
  return codes.width == 1 ? codes.by_column[at]
                          : reinterpret_cast<const std::uint16_t*>(codes.by_column)[at];
}

inline std::uint32_t position_at(const RowNumbers& rows, std::uint32_t i) {
  return rows.positions == nullptr ? i : rows.positions[i];
}
inline RowId row_at(const RowNumbers& rows, std::uint32_t position) {
  return rows.table_rows == nullptr ? position : rows.table_rows[position];
}

// Contribution of an element to channel c.
inline PackedSum value_of(const RowValues& values, Element e, std::uint32_t channel) {
  if (channel == values.outputs) return 1;
  if (values.wide != nullptr)
    return values.wide[static_cast<std::uint64_t>(row_of(e)) * values.outputs + channel];
  const auto pair = static_cast<std::int32_t>(e >> 32);
  return pack(pair >> 16, pair & 0xffff);
}
