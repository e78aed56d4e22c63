// The losses, and the arguments of their kernels, as plain structs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace arboost {

// Each loss is written once, in loss/pointwise.h: value, gradient and hessian of one row. F is the
// row's score; a deviance is written so that a perfect score has the value 0.
enum class Loss {
  squared_error,   // (y - F)^2 / 2
  absolute_error,  // |y - F|
  huber,           // r = y - F: r^2 / 2 up to |r| = delta, a straight line beyond
  quantile,        // alpha r for r = y - F > 0, else (alpha - 1) r; one output for each alpha
  poisson,         // half the Poisson deviance of y and e^F
  gamma,           // half the gamma deviance of y and e^F
  tweedie,         // half the Tweedie deviance of y and e^F, power in (1, 2)
  logistic,        // log(1 + e^F) - y F, y in {0, 1}
  softmax,         // log sum_k e^F_k - F_y, y in {0 .. K-1}
  one_hot,         // sum_k ([y = k] - F_k)^2 / 2, y in {0 .. K-1}
  exponential,     // e^(-s F) with s = 2 y - 1, y in {0, 1}
  given,           // gradients and hessians come as arrays
};

// Targets, weights and scores of training rows.
struct LossRows {
  const double* y;       // [n_rows]; Loss::given: the gradients, [n_rows][outputs]
  const double* weight;  // [n_rows] or null for 1; Loss::given: the hessians, [n_rows][outputs]
  const double* scores;  // [n_rows][outputs]; null for scores of 0 where a function says so
  std::size_t n_rows;
  std::size_t outputs;
};

// Rows -> fixed-point pairs: round(value * 2^exponent). The exponents are chosen so that no value
// exceeds 2^30, from bounds that hold for all rows.
struct LossArgs {
  Loss loss;
  const double* parameters;
  bool least_squares;
  LossRows rows;
  double g_scale, h_scale;    // 2^exponent
  FixedPair* pairs;           // null: only the bounds are wanted
  std::size_t row_stride;     // pairs from one row to the next ...
  std::size_t output_stride;  // ... and from one output to the next
};

}  // namespace arboost
