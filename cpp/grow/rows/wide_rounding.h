// Fixed-point numbers -> the coarser integers of wide pairs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arboost {

// Least mean |g| and h, in units, of pairs that are rounded well: a few huge numbers must not round
// all others away.
constexpr std::int64_t fine_mean_units = 16;

// The nearest integer; of two the one that is farther from 0.
inline std::int32_t nearest(double x) {
  return static_cast<std::int32_t>(x + (x < 0 ? -0.5 : 0.5));
}

// Rounding by a shift: to the nearest integer or, where the mean is too low for that, as in tables
// of 2^26 rows and more, stochastically. Then sums are unbiased (grow/kernels/quantise.h).
class WideRounding {
 public:
  WideRounding(std::int64_t sum, std::size_t n, int shift)
      : shift_(shift),
        stochastic_(shift > 0 && (sum >> shift) < fine_mean_units * static_cast<std::int64_t>(n)) {}

  int shift() const { return shift_; }
  bool stochastic() const { return stochastic_; }

  // `random` has 16 bits.
  std::int64_t operator()(std::int64_t x, std::uint32_t random) const {
    return stochastic_ ? (x + ((std::int64_t{random} << shift_) >> 16)) >> shift_ : nearest(x);
  }
  std::int64_t nearest(std::int64_t x) const {
    return (x + (std::int64_t{1} << shift_ >> 1)) >> shift_;
  }

 private:
  int shift_;
  bool stochastic_;
};

}  // namespace arboost
