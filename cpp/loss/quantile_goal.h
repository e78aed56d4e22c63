// Target of the selection of a quantile, for the processor and for devices.
#pragma once

#include <cstdint>

namespace arboost {

// The first value at which the cumulative weight reaches `weight`. If it reaches `weight` exactly,
// within the tolerance, the next value is needed as well.
struct QuantileGoal {
  double weight, tolerance;

  QuantileGoal(double alpha, std::int64_t total)
      : weight(alpha * static_cast<double>(total)),
        // Far above the rounding error of alpha * total, far below the weight of one of 2^32 rows.
        tolerance(static_cast<double>(total) * 0x1p-40) {}
  bool reached_by(std::int64_t sum) const { return static_cast<double>(sum) >= weight - tolerance; }
  bool passed_by(std::int64_t sum) const { return static_cast<double>(sum) > weight + tolerance; }
};

}  // namespace arboost
