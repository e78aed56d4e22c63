// The gain of a split. With the sums G, H of one side's gradients and hessians, the score of a side
// is
//
//   score(G, H) = S(G)^2 / (H + lambda),   S(G) = sign(G) max(|G| - alpha, 0)
//
// and the gain of a split is score(left) + score(right) - score(node) (Chen and Guestrin 2016,
// equation 7, without its factor 1/2; alpha is the L1 term on leaf weights).
//
// This is the quadratic criterion: with g = -w y and h = w the squared error, and with one output a
// class the Gini impurity. The other criteria, without penalties, are
//
//   entropy, poisson    score(G, H) = Y log(Y / H),   Y = -G
//   absolute_error      minus the error around the median, from rows (grow/rows/absolute.h)
//   error               weight of the most frequent class (grow/search/node_score.h)
//   gain_ratio          as entropy; features are compared by another measure
//                       (grow/split/ratio_search.cpp)
//
// For counts y >= 0, the half deviance of a side is a sum over its rows minus its score. With one
// output a class, Y / H is the share of the class, and the entropy times the weight is minus the
// sum of all scores; with one output of -1 and 1 for two classes, the classes' sums are (H - G) / 2
// and (H + G) / 2. (Breiman, Friedman, Olshen and Stone 1984 for all but the deviance.)
#pragma once

#include <cstdint>

namespace arboost {

struct GroupedFeatures;  // tree/level_groups.h

enum class Criterion : std::uint8_t {
  quadratic,
  entropy,
  poisson,
  absolute_error,
  error,
  gain_ratio
};

// Parameters in the integer units of gradients and hessians: integer sums enter without conversion,
// and all scales are powers of two, so the change of units is exact.
struct GainParams {
  double reg_lambda = 0, reg_alpha = 0, max_delta_step = 0;
  std::int32_t min_h = 1;      // smallest sum of hessians in a child, at least 1
  std::int64_t min_count = 1;  // smallest number of rows in a child; above 1 only when counted
  int outputs = 1;
  int channels = 1;
  std::int64_t apart = -1;  // least hessian between splits that are tried; -1: all are
  // Monotone constraints (one output): steps stay in [lower, upper], and `direction` says whether
  // the right side's step must not be below (+1) or above (-1) the left side's.
  bool bounded = false;
  int direction = 0;
  double lower = 0, upper = 0;
  Criterion criterion = Criterion::quadratic;
  bool two_classes = false;  // in one output, of entropy and error
  // Error of several targets: the end of the outputs of each; null: all are of one target.
  const std::uint32_t* target_ends = nullptr;
  int targets = 1;
  double h_per_g = 1;  // hessian unit / gradient unit
  // Categories (grow/search/category.h).
  double cat_smooth = 0, cat_l2 = 0, min_cat_h = 0, min_group_h = 0;
  std::int32_t max_cat_to_onehot = 4, max_cat_threshold = 64;
  const GroupedFeatures* grouped = nullptr;
};

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

// Twice the decrease of the objective by one side of a split: -(2 G w + (H + lambda) w^2 + 2 alpha
// |w|) with the step w clipped to max_delta_step; without clipping, the score above.
template <bool plain>
inline double side_score(const GainParams& p, double g, double h) {
  if constexpr (plain) {
    return g * g / (h + p.reg_lambda);
  } else {
    const double size = g < 0 ? -g : g;
    const double shrunk = size > p.reg_alpha ? size - p.reg_alpha : 0.0;
    const double denominator = h + p.reg_lambda;
    const double free_step = shrunk / denominator;
    const bool limited = p.max_delta_step > 0 && free_step > p.max_delta_step;
    const double step = limited ? p.max_delta_step : free_step;
    return step * (2 * shrunk - denominator * step);
  }
}

// The step of a side whose sums are G and H: the minimiser of its objective within all limits.
inline double bounded_step(const GainParams& p, double g, double h) {
  const double size = g < 0 ? -g : g;
  const double denominator = h + p.reg_lambda;
  double step = size > p.reg_alpha && denominator > 0 ? (size - p.reg_alpha) / denominator : 0.0;
  if (p.max_delta_step > 0 && step > p.max_delta_step) step = p.max_delta_step;
  step = g < 0 ? step : -step;
  step = step < p.lower ? p.lower : step;
  return step > p.upper ? p.upper : step;
}

// Twice the decrease of the objective by one side with a given step.
inline double score_of_step(const GainParams& p, double g, double h, double step) {
  const double size = step < 0 ? -step : step;
  return -(2 * g * step + (h + p.reg_lambda) * step * step + 2 * p.reg_alpha * size);
}

// score(left) + score(right); the plain form needs one division instead of two.
template <bool plain, class Real>
inline Real split_score(const GainParams& p, Real left_g, Real left_h, Real right_g, Real right_h) {
  if constexpr (plain) {
    const Real lambda = static_cast<Real>(p.reg_lambda);
    const Real left = left_h + lambda, right = right_h + lambda;
    return (left_g * left_g * right + right_g * right_g * left) / (left * right);
  } else {
    return side_score<false>(p, left_g, left_h) + side_score<false>(p, right_g, right_h);
  }
}

// True without an L1 term and step limit, where scores have the plain form.
inline bool is_plain(const GainParams& p) {
  return p.reg_alpha == 0 && p.max_delta_step == 0 && !p.bounded &&
         p.criterion == Criterion::quadratic;
}

}  // namespace
}  // namespace arboost
