// Left sums of candidate splits -> the best candidate by entropy or by the deviance of counts.
// About 3 ns a candidate and output. Single-threaded.
//
// As in grow/search/rough.h, scores are computed as floats, and only those that may be the highest
// as doubles: a float logarithm takes a tenth of the time. The float scores are those above the
// floor, plus the largest error that they can have, so a candidate below 0 cannot be the best.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <algorithm>  // max
#include <bit>        // bit_cast

#include "grow/search/gain.h"
#include "grow/search/node_score.h"
#include "grow/search/rough.h"
#include "grow/search/search_data.h"
#include "loss/functions.h"  // log_of

namespace arboost::ARBOOST_ISA {
namespace {

// The score of one side for entropy and counts.
inline double log_score(const GainParams& p, double g, double h) {
  return arboost::log_score(p, g, h, [](double x) { return log_of(x); });
}

// The scores of both sides of one output, from their packed sums.
inline double log_score_of_sides(const GainParams& p, std::int64_t left, std::int64_t right) {
  return log_score(p, sum_g(left), sum_h(left)) + log_score(p, sum_g(right), sum_h(right));
}

// A mean of 0 has infinite deviance for any positive count, so it is not allowed.
inline bool allows(const GainParams& p, std::int64_t left, std::int64_t right) {
  return p.criterion != Criterion::poisson || (sum_g(left) < 0 && sum_g(right) < 0);
}

// log x for normal x > 0, with an error below 2e-7 + 1e-7 |log x|: log_of with a shorter series.
inline float rough_log(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t k = (bits - 0x3f3504f3) >> 23;  // from sqrt(1/2) on
  const auto m = std::bit_cast<float>(bits - (k << 23));
  const float s = (m - 1.0f) / (m + 1.0f), q = s * s;
  const float series = ((q * (1.0f / 7) + 1.0f / 5) * q + 1.0f / 3) * q;
  return static_cast<float>(k) * 0.69314718f + (2.0f * s + 2.0f * s * series);
}

// Y log(Y / W); 0 for Y = 0, where the logarithm is that of some other number, and for a Y that
// rounding of the rows has made negative.
inline float rough_part(float sum, float weight) {
  const float positive = sum > 1e-20f ? sum : 1e-20f;
  return (sum > 0 ? sum : 0.0f) * rough_log(positive / weight);
}

// Sums of a side: with one output a class, and for counts, those of the output; else of two
// classes, as integers or, for large nodes and other units of hessians, as doubles.
enum class SideSums : std::uint8_t { output, two_integers, two_doubles };

// The score of one side; of an `output` in units of hessians, so that the sum of both sides differs
// by a constant.
template <SideSums sums>
inline float rough_side(double h_per_g, std::int32_t g, std::int32_t h) {
  const auto of_two = [](auto first, auto other, auto weight) {
    const auto whole = static_cast<float>(weight);
    return rough_part(static_cast<float>(first) * 0.5f, whole) +
           rough_part(static_cast<float>(other) * 0.5f, whole);
  };
  if constexpr (sums == SideSums::output) {
    return rough_part(-static_cast<float>(g), static_cast<float>(h));
  } else if constexpr (sums == SideSums::two_integers) {
    return of_two(h - g, h + g, h);
  } else {
    const double weight = h * h_per_g;
    return of_two(weight - g, weight + g, weight);
  }
}

// One output's rough scores of n splits, added to those of the outputs before.
template <SideSums sums, bool is_counts>
void add_rough_logs(const GainParams& p, const Pass& pass, std::size_t n, int output,
                    SplitScratch& scratch) {
  add_rough<false>(
      pass, n, output, scratch, [h_per_g = p.h_per_g](std::int64_t left, std::int64_t right) {
        const std::int32_t left_g = sum_g(left), right_g = sum_g(right);
        const float score = rough_side<sums>(h_per_g, left_g, sum_h(left)) +
                            rough_side<sums>(h_per_g, right_g, sum_h(right));
        const bool allowed = !is_counts || ((left_g < 0) & (right_g < 0));  // see `allows`
        return allowed ? score : -std::numeric_limits<float>::infinity();
      });
}

// The largest error of a rough score, and the constant between rough scores and scores.
struct LogBounds {
  double slack, constant;
};

LogBounds log_bounds(const GainParams& p, const Pass& pass) {
  double size = 0;  // of the node: sum of its weights, or of its counts
  for (int k = 0; k < p.outputs; ++k)
    size += p.two_classes ? sum_h(pass.totals[k]) * p.h_per_g
                          : -static_cast<double>(sum_g(pass.totals[k]));
  const bool has_units = !p.two_classes && p.h_per_g != 1;
  const double unit = has_units ? log_of(p.h_per_g) : 0.0;
  // Sums of Y |log(Y / W)| are at most the size times this: log K for the shares of K classes.
  double most = p.criterion == Criterion::entropy ? log_of(p.outputs + 1) : log_of(0x1p31);
  most += unit < 0 ? -unit : unit;
  return {size * (1e-6 + 4e-7 * most * (p.outputs + 3)), -size * unit};
}

// Index of the first highest score above `floor`, which is then in scratch.scores; else pass.n.
std::size_t first_best_of_logarithms(const GainParams& p, const Pass& pass, double floor,
                                     SplitScratch& scratch) {
  const std::size_t n = pad_outputs(p, pass, scratch);
  const LogBounds bounds = log_bounds(p, pass);
  const auto start = static_cast<float>(bounds.constant - floor + bounds.slack);
  std::fill_n(scratch.rough_sums.data(), n, start);
  std::fill_n(scratch.hessians.data(), n, 0);
  const bool fits_integers = p.h_per_g == 1 && sum_h(pass.totals[0]) < 1 << 30;
  const auto add = p.two_classes && fits_integers ? add_rough_logs<SideSums::two_integers, false>
                   : p.two_classes                ? add_rough_logs<SideSums::two_doubles, false>
                   : p.criterion == Criterion::poisson ? add_rough_logs<SideSums::output, true>
                                                       : add_rough_logs<SideSums::output, false>;
  for (int k = 0; k < p.outputs; ++k) add(p, pass, n, k, scratch);
  const std::int32_t highest = allowed_scores(p, pass, n, scratch);
  if (highest < 0) return pass.n;
  const double least = std::max(std::bit_cast<float>(highest) - 2 * bounds.slack, 0.0);
  return first_best_of_hits(
      p, pass, std::bit_cast<std::int32_t>(static_cast<float>(least)), floor, scratch,
      [&](std::int64_t left, std::int64_t right) { return log_score_of_sides(p, left, right); });
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
