// Sums of a node -> its own score, and the lower bound of the score of a split.
//
// Logarithms are an argument: each instruction set and each device has its own (loss/functions.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "grow/search/gain.h"
#include "tree/tree_rows.h"

namespace arboost {

// A gain below this share of the node's own score is a rounding error.
constexpr double least_relative_gain = 1e-10;

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

// The hessian of a side, over all outputs.
inline std::int64_t sum_of_h(const std::int64_t* sums, std::size_t outputs) {
  std::int64_t h = 0;
  for (std::size_t k = 0; k < outputs; ++k) h += sum_h(sums[k]);
  return h;
}

// The score of one side for entropy and counts.
template <class Log>
inline double log_score(const GainParams& p, double g, double h, Log log) {
  const double weight = h * p.h_per_g;
  const auto part = [=](double sum) { return sum > 0 ? sum * log(sum / weight) : 0.0; };
  if (!p.two_classes) return part(-g);
  return part((weight - g) / 2) + part((weight + g) / 2);
}

// The factor on the second key of the score by error, which is then at most a quarter of its unit.
inline double error_key(const GainParams& p, const std::int64_t* totals) {
  const double weight = sum_h(totals[0]) * p.h_per_g;
  return 0.25 / (weight * p.h_per_g * p.targets);
}

// The score of a split by error: the weight of the most frequent classes of both sides, in units of
// gradients; of two classes in one output twice that, less the weight of the node. These are
// integers. A fraction is the second key, the score by Gini impurity, for splits of equal errors:
// most splits near the root of a deep tree change no majority. left(k) is the sum of output k.
template <class Left>
inline double error_score(const GainParams& p, const std::int64_t* totals, double key,
                          const Left& left) {
  const auto square = [](double g, double h) { return h > 0 ? g * g / h : 0.0; };
  const bool two = p.two_classes;
  const auto weight = [two](double g) { return two && g > 0 ? g : -g; };
  double frequent = 0, squares = 0;
  int k = 0;
  for (int t = 0; t < p.targets; ++t) {
    const int end = p.target_ends == nullptr ? p.outputs : static_cast<int>(p.target_ends[t]);
    double most_left = 0, most_right = 0;
    for (; k < end; ++k) {
      const std::int64_t side = left(k), other = totals[k] - side;
      const double left_g = sum_g(side), right_g = sum_g(other);
      squares += square(left_g, sum_h(side)) + square(right_g, sum_h(other));
      const double left_weight = weight(left_g), right_weight = weight(right_g);
      most_left = left_weight > most_left ? left_weight : most_left;
      most_right = right_weight > most_right ? right_weight : most_right;
    }
    frequent += most_left + most_right;
  }
  return frequent + key * squares;
}

// The gain without the second key.
inline double gain_of_errors(double gain) {
  return static_cast<double>(static_cast<std::int64_t>(gain + 0.5));
}

// The score of a node without bounds, over all outputs.
template <class Log>
inline double node_score(const GainParams& p, const std::int64_t* sums, Log log) {
  if (p.criterion == Criterion::error)
    return error_score(p, sums, error_key(p, sums), [sums](int k) { return sums[k]; });
  const bool plain = is_plain(p);
  double score = 0;
  for (int k = 0; k < p.outputs; ++k) {
    const double g = sum_g(sums[k]), h = sum_h(sums[k]);
    score += p.criterion != Criterion::quadratic ? log_score(p, g, h, log)
             : plain                             ? side_score<true>(p, g, h)
                                                 : side_score<false>(p, g, h);
  }
  return score;
}

// Lower bound of a split's score. A bounded node's own score can be negative: its bounds may force
// a step that raises the objective.
inline double score_floor(const GainParams& p, const std::int64_t* sums, double score,
                          double min_gain, bool allow_zero_gain) {
  double size = score < 0 ? -score : score;
  if (p.criterion == Criterion::entropy || p.criterion == Criterion::poisson)
    for (int k = 0; k < p.outputs; ++k)  // logarithms of means near 1 are near 0
      size += p.two_classes ? sum_h(sums[k]) * p.h_per_g : -static_cast<double>(sum_g(sums[k]));
  const auto larger = [](double a, double b) { return a < b ? b : a; };
  // The second key of errors is a small part of the score, which is rounded four times.
  const double least = p.criterion == Criterion::error ? 0x1p-50 : least_relative_gain;
  if (!allow_zero_gain) return score + larger(min_gain, least * size);
  constexpr double smallest = 2.2250738585072014e-308;
  return score + min_gain - larger(least * (size + min_gain), smallest);
}

}  // namespace
}  // namespace arboost
