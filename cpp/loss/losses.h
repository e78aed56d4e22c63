// The losses by name, and what one call of the gradient kernel takes and gives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "types.h"

namespace arboost {

// Each loss is written once, in loss/pointwise.h, as gradient and hessian of one row.
enum class Loss {
  squared_error,  // (score - y)^2 / 2
  logistic,       // log(1 + e^score) - y score, y in {0, 1}
  softmax,        // log sum_k e^score_k - score_y, y in {0 .. K-1}
  given,          // gradients and hessians come as arrays
};

// Rows -> fixed-point pairs: round(value * 2^exponent). The exponents are chosen so that no value
// exceeds 2^30, from bounds that hold for all rows.
struct LossArgs {
  Loss loss;
  const double* y;       // [n_rows]; `given`: the gradients, [n_rows][outputs]
  const double* weight;  // [n_rows] or null for 1; `given`: the hessians, [n_rows][outputs]
  const double* scores;  // [n_rows][outputs]
  std::size_t outputs;
  double g_scale, h_scale;    // 2^exponent
  FixedPair* pairs;           // null: only the bounds are wanted
  std::size_t row_stride;     // pairs from one row to the next ...
  std::size_t output_stride;  // ... and from one output to the next
};

// What one call found in its rows. Exact, so the total does not depend on how rows were grouped.
struct LossSums {
  explicit LossSums(std::size_t outputs) : abs_g(outputs, 0), h(outputs, 0) {}

  // Bit patterns of the largest |gradient| and hessian: for numbers >= 0 they are ordered like the
  // numbers, and an infinity or NaN comes out on top instead of being lost in a comparison.
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

}  // namespace arboost
