// Numbers whose means or medians the leaves of a tree store.
#pragma once

#include <cstdint>
#include <span>

namespace arboost {

struct LeafTarget {
  std::span<const double> y;       // [training row][width]
  std::span<const double> weight;  // [training row]; empty: 1
  std::uint64_t version = 0;       // of these numbers, among those of all targets
};

}  // namespace arboost
