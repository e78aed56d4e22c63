// Scores of splits by sets of levels.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "grow/search/gain.h"
#include "grow/search/logarithms.h"
#include "grow/search/node_score.h"
#include "grow/search/search_data.h"
#include "grow/search/split.h"
#include "tree/rule.h"

namespace arboost::ARBOOST_ISA {
namespace {

// The scores of both sides of one output, from their packed sums.
template <bool plain>
inline double score_both(const GainParams& p, std::int64_t left, std::int64_t right) {
  const double left_g = sum_g(left), left_h = sum_h(left);
  const double right_g = sum_g(right), right_h = sum_h(right);
  if constexpr (!plain)
    if (p.criterion != Criterion::quadratic) return log_score_of_sides(p, left, right);
  if (!p.bounded) return score_of_sides<plain>(p, left, right);
  return score_of_step(p, left_g, left_h, bounded_step(p, left_g, left_h)) +
         score_of_step(p, right_g, right_h, bounded_step(p, right_g, right_h));
}

// The score of the split that has `left` of the totals on its left, or `forbidden`.
template <bool plain>
double score_of_set(const GainParams& p, const std::int64_t* left, const std::int64_t* totals) {
  double score = 0;
  std::int64_t left_h = 0, right_h = 0;
  bool allowed = true;
  for (int k = 0; k < p.outputs; ++k) {
    const std::int64_t right = totals[k] - left[k];
    allowed &= allows(p, left[k], right);
    left_h += sum_h(left[k]);
    right_h += sum_h(right);
    if (plain || p.criterion != Criterion::error) score += score_both<plain>(p, left[k], right);
  }
  if (!plain && p.criterion == Criterion::error)
    score = error_score(p, totals, error_key(p, totals), [left](int k) { return left[k]; });
  const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
  allowed &= left_h >= min_h && right_h >= min_h;
  if (p.channels > p.outputs)
    allowed &= left[p.outputs] >= p.min_count && totals[p.outputs] - left[p.outputs] >= p.min_count;
  return allowed ? score : forbidden;
}

// The score of the node itself.
double score_of_node(const GainParams& p, const std::int64_t* totals) {
  if (!p.bounded) return node_score(p, totals, [](double x) { return log_of(x); });
  const double g = sum_g(totals[0]), h = sum_h(totals[0]);
  return score_of_step(p, g, h, bounded_step(p, g, h));
}

void take_set(const GainParams& p, double score, const CodeSet& set, const std::int64_t* sums,
              SplitScratch& scratch, FeatureSplit& best) {
  best.score = score;
  best.left = set;
  for (int c = 0; c < p.channels; ++c) scratch.left[c] = sums[c];
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
