// Losses with their parameters, and the results of their kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "loss/loss_args.h"

namespace arboost {

// A loss with its parameters: quantile has an alpha for each output, huber its delta, tweedie its
// power, the others none.
struct LossSpec {
  Loss loss;
  std::vector<double> parameters = {};
  bool least_squares = false;  // the weight replaces the hessian: Friedman's trees
};

// Sums over the rows of one call. Exact, so the total does not depend on the grouping of rows.
struct LossSums {
  explicit LossSums(std::size_t outputs) : abs_g(outputs, 0), h(outputs, 0) {}

  // Bit patterns of the largest |gradient| and hessian: bit patterns of numbers >= 0 have the order
  // of the numbers, and infinities and NaN come last instead of getting lost in comparisons.
  std::int64_t max_g_bits = 0, max_h_bits = 0;
  std::vector<std::int64_t> abs_g, h;  // per output: sums of the fixed-point |g| and h

  void merge(const LossSums& other) {
    max_g_bits = std::max(max_g_bits, other.max_g_bits);
    max_h_bits = std::max(max_h_bits, other.max_h_bits);
    for (std::size_t k = 0; k < h.size(); ++k) {
      abs_g[k] += other.abs_g[k];
      h[k] += other.h[k];
    }
  }
};

// Weighted losses of some rows, summed over outputs, and their weights.
struct LossValue {
  double loss = 0, weight = 0;
};

}  // namespace arboost
