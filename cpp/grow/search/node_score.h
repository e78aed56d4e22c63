// Sums of a node -> its own score, and the lower bound of the score of a split.
//
// Logarithms are an argument: each instruction set and each device has its own (loss/functions.h).
#pragma once

#include <cstdint>

#include "grow/search/gain.h"
#include "tree/tree_rows.h"

namespace arboost {

// A gain below this share of the node's own score is a rounding error.
constexpr double least_relative_gain = 1e-10;

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

// The score of one side for entropy and counts.
template <class Log>
inline double log_score(const GainParams& p, double g, double h, Log log) {
  const double weight = h * p.h_per_g;
  const auto part = [=](double sum) { return sum > 0 ? sum * log(sum / weight) : 0.0; };
  if (!p.two_classes) return part(-g);
  return part((weight - g) / 2) + part((weight + g) / 2);
}

// The score of a node without bounds, over all outputs.
template <class Log>
inline double node_score(const GainParams& p, const std::int64_t* sums, Log log) {
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
  if (!allow_zero_gain) return score + larger(min_gain, least_relative_gain * size);
  constexpr double smallest = 2.2250738585072014e-308;
  return score + min_gain - larger(least_relative_gain * (size + min_gain), smallest);
}

}  // namespace
}  // namespace arboost
