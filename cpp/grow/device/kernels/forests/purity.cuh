// Purity of nodes, as in grow/rows/purity.h.
#pragma once

#include "grow/device/kernels/forests/groups.cuh"
#include "grow/device/kernels/rows.cuh"
#include "grow/rows/value_bounds.h"

inline ValueBounds both(ValueBounds a, const ValueBounds& b) {
  a.narrow(b);
  return a;
}

// Bounds of the target value of rows, by the rounding of their pairs of an output; some empty ones
// as soon as they are known to be empty.
template <class Group>
inline ValueBounds bounds_of_rows(const TargetPairs& targets, const Element* elements,
                                  std::uint32_t n, std::uint32_t k) {
  ValueBounds lane_bounds;
  // Most nodes are impure, and tell so by their first rows.
#pragma unroll 1
  for (std::uint32_t first = 0; first < n; first += Group::size) {
    const std::uint32_t i = first + Group::rank();
    if (i < n) {
      const RowId row = row_of(elements[i]);
      const std::uint32_t position =
          targets.position_of_row == nullptr ? row : targets.position_of_row[row];
      lane_bounds.narrow(
          bounds_of(targets.pairs[position * targets.row_stride + k * targets.output_stride]));
    }
    if (Group::any(lane_bounds.is_empty())) break;
  }
  return Group::all(lane_bounds, both);
}

// True if one target value is within the rounding of the pairs of all rows, in each output.
template <class Group>
inline bool is_pure(const TargetPairs& targets, const Element* elements, std::uint32_t n) {
#pragma unroll 1
  for (std::uint32_t k = 0; k < targets.outputs; ++k)
    if (bounds_of_rows<Group>(targets, elements, n, k).is_empty()) return false;
  return true;
}
