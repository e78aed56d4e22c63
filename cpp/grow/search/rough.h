// Left sums of candidate splits -> the best candidate, by float scores where these suffice.
//
// Scores are computed as floats, and only those that may be the highest as doubles: the same split
// as with doubles alone, at half the cost. Single-threaded.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <algorithm>  // fill_n, max_element
#include <bit>        // bit_cast, countr_zero
#include <limits>

#if defined(__AVX2__)
#include <immintrin.h>  // 8 or 16 scores at once
#endif

#include "grow/search/gain.h"
#include "grow/search/search_data.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Below every score: bounded nodes can have negative ones.
constexpr double forbidden = -std::numeric_limits<double>::infinity();

// The candidates of one pass: splits after entry 0 .. n-1 of the prefix sums, to which `extra` (the
// missing rows, when they go left) is added.
struct Pass {
  std::size_t n;
  const std::int64_t* totals;
  const std::int64_t* extra;  // [channels], or null for none

  std::int64_t extra_of(int channel) const { return extra == nullptr ? 0 : extra[channel]; }
  // The sum on the left of the split after entry b.
  std::int64_t left(const SplitScratch& scratch, int channel, std::size_t b) const {
    return scratch.prefix[channel * scratch.stride + b] + extra_of(channel);
  }
};

// The scores of both sides of one output, from their packed sums.
template <bool plain>
inline double score_of_sides(const GainParams& p, std::int64_t left, std::int64_t right) {
  return split_score<plain, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
}

constexpr std::size_t rough_lanes = 16;  // scores that are compared at once

// A bit for each of 16 numbers that is not below the least.
inline std::uint32_t lanes_from(const std::int32_t* rough, std::int32_t least) {
#if defined(__AVX512F__)
  return _mm512_cmpge_epi32_mask(_mm512_loadu_si512(rough), _mm512_set1_epi32(least));
#elif defined(__AVX2__)
  const auto below = [&](std::size_t j) {
    const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rough + j));
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(least), eight);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
  };
  return (below(0) | below(8) << 8) ^ 0xffff;
#else
  int any = 0;
  for (std::size_t j = 0; j < rough_lanes; ++j) any |= rough[j] >= least;
  if (any == 0) return 0;
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < rough_lanes; ++j)
    bits |= (rough[j] >= least ? std::uint32_t{1} : 0) << j;
  return bits;
#endif
}

// Among the entries of one group with rough scores of at least `least`, the first with the highest
// score above `floor`; or the group's end. Equal rows give many nearly equal entries.
std::size_t first_best_of_lanes(const GainParams& params, const Pass& pass, std::size_t group,
                                std::int32_t least, double floor, SplitScratch& scratch) {
  const GainParams p = params;
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data() + group;
  const std::int32_t* ARBOOST_RESTRICT rough = scratch.rough.data() + group;
  double* ARBOOST_RESTRICT scores = scratch.scores.data() + group;
  const std::int64_t extra = pass.extra_of(0);
  const std::int64_t total = pass.totals[0];
  for (std::size_t j = 0; j < rough_lanes; ++j) {
    const std::int64_t left = prefix[j] + extra;
    const double score = score_of_sides<true>(p, left, total - left);
    scores[j] = rough[j] >= least ? score : forbidden;
  }
  double best = floor;
  for (std::size_t j = 0; j < rough_lanes; ++j) best = scores[j] > best ? scores[j] : best;
  if (!(best > floor)) return group + rough_lanes;
  std::size_t index = 0;
  while (scores[index] != best) ++index;
  return group + index;
}

// A float score is a quotient of sums of positive terms, so its relative error is a few units of
// 6e-8; this is ten times that.
constexpr double rough_slack = 4e-6;

// Plain float scores of one output for the splits after n prefix entries, -1 where a split is
// forbidden; returns the highest. Floats >= 0 have the order of the integers of the same bits.
#if defined(__AVX2__) && !defined(__AVX512F__)
// Two shuffles part the sums of eight entries into gradients and hessians. Compilers need 24.
std::int32_t rough_of_entries(const GainParams& p, const std::int64_t* prefix, std::int64_t extra,
                              std::int64_t total, std::size_t n, std::int32_t* rough) {
  const auto in_lanes = [](std::int32_t x) { return _mm256_set1_epi32(x); };
  const __m256i extra_lanes = _mm256_set1_epi64x(extra);
  const __m256i total_g = in_lanes(sum_g(total)), total_h = in_lanes(sum_h(total));
  const __m256i min_h = in_lanes(p.min_h), none = in_lanes(-1);
  const __m256 lambda = _mm256_set1_ps(static_cast<float>(p.reg_lambda));
  const auto sums = [&](std::size_t b) {
    const __m256i packed = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(prefix + b));
    return _mm256_castsi256_ps(_mm256_add_epi64(packed, extra_lanes));
  };
  __m256i highest = none;
  for (std::size_t b = 0; b < n; b += 8) {
    const __m256 first = sums(b), second = sums(b + 4);
    const __m256i left_h = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0x88));
    const __m256i left_g = _mm256_castps_si256(_mm256_shuffle_ps(first, second, 0xdd));
    const __m256i right_h = _mm256_sub_epi32(total_h, left_h);
    const __m256 g = _mm256_cvtepi32_ps(left_g);
    const __m256 other_g = _mm256_cvtepi32_ps(_mm256_sub_epi32(total_g, left_g));
    const __m256 h = _mm256_add_ps(_mm256_cvtepi32_ps(left_h), lambda);
    const __m256 other_h = _mm256_add_ps(_mm256_cvtepi32_ps(right_h), lambda);
    const __m256 score =
        _mm256_div_ps(_mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(g, g), other_h),
                                    _mm256_mul_ps(_mm256_mul_ps(other_g, other_g), h)),
                      _mm256_mul_ps(h, other_h));
    const __m256i forbidden_lanes = _mm256_cmpgt_epi32(min_h, _mm256_min_epi32(left_h, right_h));
    const __m256i allowed = _mm256_or_si256(_mm256_castps_si256(score), forbidden_lanes);
    highest = _mm256_max_epi32(highest, allowed);
    // The shuffles left the entries in the order 0 1 4 5 2 3 6 7.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rough + b),
                        _mm256_permute4x64_epi64(allowed, 0xd8));
  }
  std::int32_t lanes[8];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), highest);
  return *std::max_element(lanes, lanes + 8);
}
#else
std::int32_t rough_of_entries(const GainParams& params, const std::int64_t* ARBOOST_RESTRICT prefix,
                              std::int64_t extra, std::int64_t total, std::size_t n,
                              std::int32_t* ARBOOST_RESTRICT rough) {
  const GainParams p = params;
  std::int32_t highest = -1;  // of integers: a maximum that vectorises everywhere
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const std::int64_t right = total - left;
    const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
    const float score =
        split_score<true, float>(p, static_cast<float>(sum_g(left)), static_cast<float>(left_h),
                                 static_cast<float>(sum_g(right)), static_cast<float>(right_h));
    const bool allowed = (left_h >= p.min_h) & (right_h >= p.min_h);
    rough[b] = allowed ? std::bit_cast<std::int32_t>(score) : -1;
    highest = rough[b] > highest ? rough[b] : highest;
  }
  return highest;
}
#endif

// The rough scores of a pass, padded to whole groups of lanes.
std::int32_t plain_rough_scores(const GainParams& p, const Pass& pass, SplitScratch& scratch) {
  constexpr std::size_t lanes = rough_lanes;
  std::int64_t* prefix = scratch.prefix.data();
  const std::int64_t extra = pass.extra_of(0);
  const std::int64_t total = pass.totals[0];
  // Pad with splits that send all rows left, so nothing right.
  std::fill_n(prefix + pass.n, lanes, total - extra);
  const std::size_t n = (pass.n + lanes - 1) & ~(lanes - 1);
  return rough_of_entries(p, prefix, extra, total, n, scratch.rough.data());
}

// The result of score_one_output<true> and first_best, at half the cost: float scores first, then
// doubles for those that may be the highest.
std::size_t first_best_plain(const GainParams& p, const Pass& pass, double floor,
                             SplitScratch& scratch) {
  constexpr std::size_t lanes = rough_lanes;
  const std::int32_t highest = plain_rough_scores(p, pass, scratch);
  if (highest < 0) return pass.n;
  const double roughly = std::bit_cast<float>(highest);
  if (roughly * (1 + rough_slack) <= floor) return pass.n;
  const auto least = std::bit_cast<std::int32_t>(static_cast<float>(roughly * (1 - rough_slack)));
  const std::int32_t* rough = scratch.rough.data();
  const std::size_t n = (pass.n + lanes - 1) & ~(lanes - 1);
  std::size_t index = pass.n;
  for (std::size_t group = 0; group < n; group += lanes) {
    const std::uint32_t hits = lanes_from(rough + group, least);
    if (std::popcount(hits) > 2) {
      const std::size_t best_lane = first_best_of_lanes(p, pass, group, least, floor, scratch);
      if (best_lane < group + lanes) floor = scratch.scores[index = best_lane];
      continue;
    }
    for (std::uint32_t left = hits; left != 0; left &= left - 1) {
      const std::size_t b = group + static_cast<std::size_t>(std::countr_zero(left));
      const std::int64_t sum = pass.left(scratch, 0, b);
      const double score = score_of_sides<true>(p, sum, pass.totals[0] - sum);
      if (!(score > floor)) continue;
      floor = scratch.scores[b] = score;
      index = b;
    }
  }
  return index;
}

// One output's rough scores of n splits, score_of(left, right), and the hessians on their left,
// added to those of the outputs before.
template <bool is_first, class Score>
void add_rough(const Pass& pass, std::size_t n, int output, SplitScratch& scratch, Score score_of) {
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data() + output * scratch.stride;
  float* ARBOOST_RESTRICT rough = scratch.rough_sums.data();
  std::int64_t* ARBOOST_RESTRICT hessians = scratch.hessians.data();
  const std::int64_t extra = pass.extra_of(output), total = pass.totals[output];
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const float score = score_of(left, total - left);
    rough[b] = is_first ? score : rough[b] + score;
    hessians[b] = (is_first ? 0 : hessians[b]) + (left & 0xffffffff);
  }
}

// The rough scores of n splits in scratch.rough_sums as integers, like those of first_best_plain;
// -1 where a split is forbidden, or its score below 0 or NaN. Returns the highest.
std::int32_t allowed_scores(const GainParams& p, const Pass& pass, std::size_t n,
                            SplitScratch& scratch) {
  std::int64_t total_h = 0;
  for (int k = 0; k < p.outputs; ++k) total_h += sum_h(pass.totals[k]);
  const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
  const std::int64_t max_h = total_h - min_h;
  const float* ARBOOST_RESTRICT sums = scratch.rough_sums.data();
  const std::int64_t* ARBOOST_RESTRICT hessians = scratch.hessians.data();
  std::int32_t* ARBOOST_RESTRICT rough = scratch.rough.data();
  for (std::size_t b = 0; b < n; ++b) {
    // NaN where an output has no hessian on a side.
    const bool allowed = (hessians[b] >= min_h) & (hessians[b] <= max_h) & (sums[b] >= 0);
    rough[b] = allowed ? std::bit_cast<std::int32_t>(sums[b]) : -1;
  }
  if (p.channels > p.outputs) {
    const std::int64_t* counts = scratch.prefix.data() + p.outputs * scratch.stride;
    const std::int64_t extra = pass.extra_of(p.outputs);
    const std::int64_t least = p.min_count - extra;
    const std::int64_t most = pass.totals[p.outputs] - extra - p.min_count;
    for (std::size_t b = 0; b < n; ++b)
      rough[b] = ((counts[b] >= least) & (counts[b] <= most)) ? rough[b] : -1;
  }
  std::int32_t highest = -1;
  for (std::size_t b = 0; b < n; ++b) highest = rough[b] > highest ? rough[b] : highest;
  return highest;
}

// Pads the prefix sums of a pass to whole groups of lanes, with splits that send all rows left.
// Returns the number of entries.
std::size_t pad_outputs(const GainParams& p, const Pass& pass, SplitScratch& scratch) {
  constexpr std::size_t lanes = rough_lanes;
  for (int c = 0; c < p.channels; ++c)
    for (std::size_t j = 0; j < lanes; ++j)
      scratch.prefix[c * scratch.stride + pass.n + j] = pass.totals[c] - pass.extra_of(c);
  return (pass.n + lanes - 1) & ~(lanes - 1);
}

// Among the entries with rough scores of at least `least`, the first with the highest score above
// `floor`, which is then in scratch.scores; else pass.n. A score is the sum of exact(left, right)
// over the outputs.
template <class Exact>
std::size_t first_best_of_hits(const GainParams& p, const Pass& pass, std::int32_t least,
                               double floor, SplitScratch& scratch, Exact exact) {
  const std::size_t end = pass.n;
  const std::int32_t* rough = scratch.rough.data();
  std::size_t index = end, last = end;
  for (std::size_t group = 0; group < end; group += rough_lanes)
    for (std::uint32_t hits = lanes_from(rough + group, least); hits != 0; hits &= hits - 1) {
      const std::size_t b = group + static_cast<std::size_t>(std::countr_zero(hits));
      bool repeated = last < end;
      for (int k = 0; repeated && k < p.outputs; ++k) {
        const std::int64_t* prefix = scratch.prefix.data() + k * scratch.stride;
        repeated = prefix[b] == prefix[last];
      }
      if (repeated) continue;
      last = b;
      double score = 0;
      for (int k = 0; k < p.outputs; ++k) {
        const std::int64_t left = pass.left(scratch, k, b);
        score += exact(left, pass.totals[k] - left);
      }
      if (!(score > floor)) continue;
      floor = scratch.scores[b] = score;
      index = b;
    }
  return index;
}

// The same as first_best_plain for several outputs, or counted rows.
std::size_t first_best_of_outputs(const GainParams& p, const Pass& pass, double floor,
                                  SplitScratch& scratch) {
  const double slack = rough_slack + 1e-7 * p.outputs;
  const std::size_t n = pad_outputs(p, pass, scratch);
  const float lambda = static_cast<float>(p.reg_lambda);
  const auto rough = [lambda](std::int64_t left, std::int64_t right) {
    const auto left_g = static_cast<float>(sum_g(left)), right_g = static_cast<float>(sum_g(right));
    const float left_h = static_cast<float>(sum_h(left)) + lambda;
    const float right_h = static_cast<float>(sum_h(right)) + lambda;
    return (left_g * left_g * right_h + right_g * right_g * left_h) / (left_h * right_h);
  };
  add_rough<true>(pass, n, 0, scratch, rough);
  for (int k = 1; k < p.outputs; ++k) add_rough<false>(pass, n, k, scratch, rough);
  const std::int32_t highest = allowed_scores(p, pass, n, scratch);
  if (highest < 0) return pass.n;
  const double roughly = std::bit_cast<float>(highest);
  if (roughly * (1 + slack) <= floor) return pass.n;
  return first_best_of_hits(
      p, pass, std::bit_cast<std::int32_t>(static_cast<float>(roughly * (1 - slack))), floor,
      scratch,
      [&](std::int64_t left, std::int64_t right) { return score_of_sides<true>(p, left, right); });
}

// Left sums of candidate splits -> the best candidate under an L1 term, a step limit or monotone
// constraints. One output. Single-threaded.
//
// None of these scores is above the plain score of the same sums: the free step is the best one,
// and an L1 term only costs. So the float scores of grow/search/rough.h are upper bounds, and the
// scores themselves, with two divisions each, are computed only where they may be the highest.

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
