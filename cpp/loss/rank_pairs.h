// Pairs of a document with the documents ranked below it: their gradients and hessians. About 2 ns
// a pair.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "base/types.h"  // ARBOOST_RESTRICT
#include "loss/lane_sums.h"
#include "loss/loss_kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Numbers are added in eight lanes, whatever the width of vectors.
struct PairLanes {
  double lanes[8] = {};

  void add(const double* numbers, std::size_t n) {
    for (std::size_t k = 0; k < n; k += 8)
      for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += numbers[k + lane];
  }
};

// The loss of a pair of weight w is w log(1 + e^(b - a)) for the scores a of the more relevant
// document and b of the other. With q = e^b / (e^a + e^b), its derivative by b is w q, that by a is
// -w q, and both second derivatives are w q (1 - q).
template <bool divided>
PairSums sums_of_pairs(const RankPairs& pairs) {
  PairLanes slopes, sizes, curves;
  double slope[value_block], size[value_block], curve[value_block];
  const double upper = pairs.exponential, score = pairs.score;
  for (std::size_t first = 0; first < pairs.n; first += value_block) {
    const std::size_t left = pairs.n - first, n = left < value_block ? left : value_block;
    const double* ARBOOST_RESTRICT weights = pairs.weights + first;
    const double* ARBOOST_RESTRICT exponentials = pairs.exponentials + first;
    const double* ARBOOST_RESTRICT scores = pairs.scores + first;
    double* ARBOOST_RESTRICT g = pairs.g + first;
    double* ARBOOST_RESTRICT h = pairs.h + first;
    for (std::size_t k = 0; k < n; ++k) {
      const double lower = exponentials[k], inverse = 1.0 / (upper + lower);
      const bool is_right = weights[k] > 0;  // the more relevant document is above
      const double wrong = (is_right ? lower : upper) * inverse;
      const double right = (is_right ? upper : lower) * inverse;
      const double weight = divided ? weights[k] / (0.01 + (score - scores[k])) : weights[k];
      slope[k] = weight * wrong;
      size[k] = slope[k] < 0 ? -slope[k] : slope[k];
      curve[k] = size[k] * right;
      g[k] += slope[k];
      h[k] += curve[k];
    }
    const std::size_t end = (n + 7) / 8 * 8;
    for (std::size_t k = n; k < end; ++k) slope[k] = size[k] = curve[k] = 0;
    slopes.add(slope, end);
    sizes.add(size, end);
    curves.add(curve, end);
  }
  return {sum_of_lanes(slopes.lanes), sum_of_lanes(sizes.lanes), sum_of_lanes(curves.lanes)};
}

PairSums rank_pairs(const RankPairs& pairs) {
  return pairs.divided ? sums_of_pairs<true>(pairs) : sums_of_pairs<false>(pairs);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
