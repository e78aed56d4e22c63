// Sums of a tree's fixed-point gradients -> the integers of its split search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/collective.h"
#include "grow/rows/wide_rounding.h"

namespace arboost {

// From this many rows on, elements carry pairs of 15 bits. Smaller data stay in the cache, where
// wide pairs cost nothing.
constexpr std::size_t narrow_rows = 32768;

// The smallest shift, at least `lowest`, after which a sum over n rows fits sum_bits even if each
// number was rounded up.
inline int shift_for(std::int64_t sum, std::size_t n, int sum_bits, int lowest) {
  int shift = lowest;
  while (shift < 30 &&
         (sum >> shift) + static_cast<std::int64_t>(n) >= (std::int64_t{1} << sum_bits))
    ++shift;
  return shift;
}

// Number of bits that numbers grow by when multiplied by a factor of at least 1.
inline int bits_of_factor(float factor) {
  int exponent = 0;
  const float mantissa = std::frexp(factor, &exponent);
  return mantissa == 0.5f ? exponent - 1 : exponent;
}

// The rows of a tree among those of all workers.
struct TreeShare {
  std::size_t all_rows;          // of the tree
  std::uint32_t first_position;  // of this worker's training rows among those of all
};

// Adds up, over the workers, the sums that the scale of a tree is chosen from; n_rows of this
// worker's n_training training rows are the tree's.
TreeShare add_workers(std::vector<std::int64_t>& sum_abs_g, std::vector<std::int64_t>& sum_h,
                      std::size_t n_rows, std::size_t n_training, Collective& workers);

struct TreeScaling {
  bool narrow;  // pairs of 15 bits inside the elements
  WideRounding g, h;
};

// Of sums |g| and h of each output over n rows; `may_be_narrow`: pairs may be.
inline TreeScaling scaling_of(const std::vector<std::int64_t>& sum_abs_g,
                              const std::vector<std::int64_t>& sum_h, std::size_t n, int sum_bits,
                              bool may_be_narrow) {
  const auto rows = static_cast<std::int64_t>(n);
  const auto narrow_shift = [&](std::int64_t sum) { return shift_for(sum, n, sum_bits, 16); };
  const int g_shift = narrow_shift(sum_abs_g[0]), h_shift = narrow_shift(sum_h[0]);
  const bool narrow = may_be_narrow && sum_h.size() == 1 && n >= narrow_rows &&
                      (sum_abs_g[0] >> g_shift) >= fine_mean_units * rows &&
                      (sum_h[0] >> h_shift) >= fine_mean_units * rows;
  if (narrow) return {true, {sum_abs_g[0], n, g_shift}, {sum_h[0], n, h_shift}};
  const auto wide = [&](const std::vector<std::int64_t>& sums) {
    const std::int64_t largest = *std::max_element(sums.begin(), sums.end());
    return WideRounding(largest, n, shift_for(largest, n, sum_bits, 0));
  };
  return {false, wide(sum_abs_g), wide(sum_h)};
}

}  // namespace arboost
