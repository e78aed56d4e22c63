// Choice among the bins that give the same partition of a node's rows.
#pragma once

#include <cstdint>

namespace arboost {

// In an unnamed namespace: kernels of a device have a copy of their own.
namespace {

// All bins from the last on the left to the first on the right, exclusive, give the same partition
// of the node's rows; the search returns the lowest. The edge nearest to the middle of the gap
// generalises best; with only missing values on the right, the last bin does.
inline std::uint32_t middle_bin(const double* edges, std::uint32_t n_bins, std::uint32_t bin,
                                std::uint32_t next) {
  if (next >= n_bins) return n_bins - 1;
  std::uint32_t low = bin, high = next - 1;
  const double middle = edges[low] / 2 + edges[high] / 2;
  while (high - low > 1) {
    const std::uint32_t between = low + (high - low) / 2;
    const bool is_low = edges[between] <= middle;  // branch-free: unpredictable
    low = is_low ? between : low;
    high = is_low ? high : between;
  }
  return middle - edges[low] <= edges[high] - middle ? low : high;
}

}  // namespace
}  // namespace arboost
