// Purity of nodes, as in grow/rows/purity.h.
#pragma once

#include "grow/device/kernels/forests/groups.cuh"
#include "grow/device/kernels/rows.cuh"
#include "grow/rows/value_bounds.h"

inline ValueBounds both(ValueBounds a, const ValueBounds& b) {
  a.narrow(b);
  return a;
}

// True if one target value is within the rounding of the pairs of all rows, in each output.
template <class Group>
inline bool is_pure(const TargetPairs& targets, const Element* elements, std::uint32_t n) {
  const auto bounds_at = [&](std::uint32_t i, std::uint32_t k) {
    const RowId row = row_of(elements[i]);
    const std::uint32_t position =
        targets.position_of_row == nullptr ? row : targets.position_of_row[row];
    return bounds_of(targets.pairs[position * targets.row_stride + k * targets.output_stride]);
  };
#pragma unroll 1
  for (std::uint32_t k = 0; k < targets.outputs; ++k) {
    ValueBounds lane_bounds = bounds_at(0, k);
    // Most nodes are impure, and tell so by their first rows.
#pragma unroll 1
    for (std::uint32_t first = 0; first < n; first += Group::size) {
      const std::uint32_t i = first + Group::rank();
      if (i < n) lane_bounds.narrow(bounds_at(i, k));
      if (Group::any(lane_bounds.is_empty())) return false;
    }
    if (Group::all(lane_bounds, both).is_empty()) return false;
  }
  return true;
}
