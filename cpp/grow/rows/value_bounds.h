// Bounds of the one target value that all rows of a node may have.
#pragma once

#include <cstdint>

#include "base/types.h"  // FixedPair

namespace arboost {

// In an unnamed namespace: kernels of a device have a copy of their own.
namespace {

inline bool is_below(const std::int64_t (&a)[2], const std::int64_t (&b)[2]) {
  return a[0] * b[1] < b[0] * a[1];
}

}  // namespace

// Bounds of a target value g / h, for one output: the greatest lower and the least upper end of the
// ranges of some rows, as fractions. Denominators of 0: no row has a weight.
struct ValueBounds {
  std::int64_t lower[2] = {0, 0}, upper[2] = {0, 0};

  void narrow(const ValueBounds& other) {
    if (other.lower[1] == 0) return;
    if (lower[1] == 0) {
      *this = other;
      return;
    }
    if (is_below(lower, other.lower)) {
      lower[0] = other.lower[0];
      lower[1] = other.lower[1];
    }
    if (is_below(other.upper, upper)) {
      upper[0] = other.upper[0];
      upper[1] = other.upper[1];
    }
  }
  // True if no value is within them.
  bool is_empty() const { return lower[1] != 0 && is_below(upper, lower); }
};

namespace {

// The ratios g / h that a pair may stand for: g was rounded by up to tolerance / 2, h by up to 1/2.
// The ends are fractions of integers below 2^32, so that products of two fit 64 bits.
inline ValueBounds bounds_of(const FixedPair& pair, std::int32_t tolerance = 1) {
  if (pair.h == 0) return {};
  const std::int64_t g = pair.g, h = pair.h, t = tolerance;
  return {{2 * g - t, 2 * h + (g > 0 ? 1 : -1)}, {2 * g + t, 2 * h + (g < 0 ? 1 : -1)}};
}

}  // namespace

}  // namespace arboost
