// Left sums of candidate splits -> the best candidate under an L1 term, a step limit or monotone
// constraints. One output. Single-threaded.
//
// None of these scores is above the plain score of the same sums: the free step is the best one,
// and an L1 term only costs. So the float scores of grow/search/rough.h are upper bounds, and the
// scores themselves, with two divisions each, are computed only where they may be the highest.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <bit>  // bit_cast

#include "grow/search/gain.h"
#include "grow/search/rough.h"
#include "grow/search/search_data.h"

namespace arboost::ARBOOST_ISA {
namespace {

// score(begin, end) writes the scores of these entries to scratch.scores.
template <class Score>
std::size_t first_best_limited(const GainParams& p, const Pass& pass, double floor,
                               SplitScratch& scratch, Score score) {
  constexpr std::size_t lanes = rough_lanes;
  const std::int32_t highest = plain_rough_scores(p, pass, scratch);
  if (highest < 0) return pass.n;
  const double bound = std::bit_cast<float>(highest);
  if (bound * (1 + rough_slack) <= floor) return pass.n;
  const std::int32_t* rough = scratch.rough.data();
  const double* scores = scratch.scores.data();
  // Scores of a group that some candidate reaches, and the least bound of those that may, too.
  double reached = floor;
  std::int32_t least = 0;
  const auto reach = [&](std::size_t group) {
    score(group, group + lanes);
    for (std::size_t b = group; b < group + lanes; ++b)
      reached = scores[b] > reached ? scores[b] : reached;
    if (reached > 0)
      least = std::bit_cast<std::int32_t>(static_cast<float>(reached * (1 - rough_slack)));
  };
  std::size_t first = 0;
  while (rough[first] != highest) ++first;
  reach(first & ~(lanes - 1));
  std::size_t index = pass.n;
  for (std::size_t group = 0; group < pass.n; group += lanes) {
    if (lanes_from(rough + group, least) == 0) continue;
    reach(group);
    for (std::size_t b = group; b < group + lanes; ++b) {
      if (!(scores[b] > floor)) continue;
      floor = scores[b];
      index = b;
    }
  }
  return index;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
