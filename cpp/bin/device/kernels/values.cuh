// Values of the user's table as the host reads them (table/columns.h).
#pragma once

#include <cstdint>
#include <limits>

#include "bin/device/bin_records.h"
#include "cuda/kernels/warps.cuh"

namespace arboost::cuda {

inline std::uint64_t table_row(const TableRows& rows, std::uint64_t i) {
  return rows.index == nullptr ? i : rows.index[i];
}

template <class T>
inline T raw_value(const DeviceColumn& column, std::uint64_t row) {
  return *reinterpret_cast<const T*>(column.values +
                                     static_cast<std::int64_t>(row) * column.stride);
}

// A value as a double, NaN where it is missing.
template <class T>
inline double value_at(const DeviceColumn& column, std::uint64_t row) {
  const double x = to_double(raw_value<T>(column, row));
  return x == column.missing ? std::numeric_limits<double>::quiet_NaN() : x;
}

inline double value_at(const DeviceColumn& column, std::uint64_t row) {
  double x = std::numeric_limits<double>::quiet_NaN();
  with_number(column.type, [&]<class T>() { x = value_at<T>(column, row); });
  return x;
}

// Number of the n ascending numbers that are below x: 0 for NaN.
template <class Number, class At>
inline std::uint32_t count_below(std::uint32_t n, Number x, At at) {
  std::uint32_t low = 0;
  while (n > 0) {
    const std::uint32_t half = n / 2;
    const bool is_below = at(low + half) < x;
    low = is_below ? low + half + 1 : low;
    n = is_below ? n - half - 1 : half;
  }
  return low;
}

}  // namespace arboost::cuda
