// Links before and after their exponentials, for the core and for kernels of devices.
#pragma once

#include <cstdint>

namespace arboost {

enum class Link : std::int32_t {
  identity,
  exp,
  logistic,
  logistic_of_double,
  softmax,
  share_of_two,
  shares,
};

namespace {

// The logarithm of the largest double, rounded down.
constexpr double largest_score = 709.782712893384;

inline double clipped(double x, double low, double high) {
  return x < low ? low : high < x ? high : x;
}

inline double exponent_of_exp(double raw) {
  return raw >= largest_score ? largest_score : raw;
}

// At most 0: no overflow, and no cancellation in 1 - p.
inline double exponent_of_logistic(double raw, double factor) {
  // Probabilities saturate at 0 and 1 long before; twice a larger score might be infinite.
  const double bounded = factor == 1 ? raw : clipped(raw, -largest_score, largest_score);
  const double scaled = factor * bounded;
  return scaled > 0 ? -scaled : scaled;
}

struct TwoShares {
  double first, second;
};
// From e^exponent.
inline TwoShares shares_of_logistic(double raw, double small) {
  const double sum = 1.0 + small, likely = 1.0 / sum, unlikely = small / sum;
  return raw > 0 ? TwoShares{unlikely, likely} : TwoShares{likely, unlikely};
}

inline TwoShares shares_of_difference(double raw) {
  // Means of differences leave the range by rounding only.
  const double half = 0.5 * clipped(raw, -1.0, 1.0);
  return {0.5 - half, 0.5 + half};
}

inline double highest_score(const double* raw, std::uint64_t n) {
  double highest = raw[0];
  for (std::uint64_t k = 1; k < n; ++k) highest = highest < raw[k] ? raw[k] : highest;
  return highest;
}

}  // namespace
}  // namespace arboost
