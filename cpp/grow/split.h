// A node's sums -> the best split of one feature. About 1 ns a bin.
//
// For each bin b the rows with codes <= b go left, and the scores of both sides (grow/gain.h) are
// added; with several outputs, over all of them. Missing values are tried on the right and on the
// left.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include <bit>      // bit_cast, countr_zero
#include <cstring>  // memcpy
#include <limits>

#if defined(__AVX512F__)
#include <immintrin.h>  // 16 scores at once
#endif

#include "kernels.h"
#include "loss/functions.h"  // log_of

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
};

template <bool plain>
void score_one_output(const GainParams& params, const Pass& pass, SplitScratch& scratch) {
  const GainParams p = params;  // a copy of its own lets the compiler keep it in registers
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  double* ARBOOST_RESTRICT scores = scratch.scores.data();
  const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[0];
  const std::int64_t total = pass.totals[0];
  const std::size_t n = pass.n;
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const std::int64_t right = total - left;
    const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
    const double score = split_score<plain, double>(p, sum_g(left), left_h, sum_g(right), right_h);
    const bool allowed = (left_h >= p.min_h) & (right_h >= p.min_h);
    scores[b] = allowed ? score : forbidden;
  }
}

// Under monotone constraints: steps within the node's bounds, and in order.
void score_bounded(const GainParams& params, const Pass& pass, SplitScratch& scratch) {
  const GainParams p = params;
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  double* ARBOOST_RESTRICT scores = scratch.scores.data();
  const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[0];
  const double direction = p.direction;
  for (std::size_t b = 0; b < pass.n; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const std::int64_t right = pass.totals[0] - left;
    const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
    const double left_g = sum_g(left), right_g = sum_g(right);
    const double left_step = bounded_step(p, left_g, left_h);
    const double right_step = bounded_step(p, right_g, right_h);
    const double score = score_of_step(p, left_g, left_h, left_step) +
                         score_of_step(p, right_g, right_h, right_step);
    const bool ordered = direction * (right_step - left_step) >= 0;
    // Missing rows alone on the left are the same split as alone on the right, but for the order
    // that the constraint asks of values: only the latter is tried, whatever bins are empty.
    const bool has_values = (prefix[b] != 0) | (pass.extra == nullptr);
    const bool allowed = (left_h >= p.min_h) & (right_h >= p.min_h) & ordered & has_values;
    scores[b] = allowed ? score : forbidden;
  }
}

template <bool plain>
void score_outputs(const GainParams& p, const Pass& pass, SplitScratch& scratch) {
  double* scores = scratch.scores.data();
  for (std::size_t b = 0; b < pass.n; ++b) {
    double score = 0;
    std::int64_t left_h = 0, right_h = 0;
    for (int k = 0; k < p.outputs; ++k) {
      const std::int64_t left =
          scratch.prefix[k * scratch.stride + b] + (pass.extra == nullptr ? 0 : pass.extra[k]);
      const std::int64_t right = pass.totals[k] - left;
      left_h += sum_h(left);
      right_h += sum_h(right);
      score += split_score<plain, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
    }
    const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
    scores[b] = left_h >= min_h && right_h >= min_h ? score : forbidden;
  }
}

// The score of one side for entropy and counts.
inline double log_score(const GainParams& p, double g, double h) {
  const double weight = h * p.h_per_g;
  const auto part = [weight](double sum) { return sum > 0 ? sum * log_of(sum / weight) : 0.0; };
  if (!p.two_classes) return part(-g);
  return part((weight - g) / 2) + part((weight + g) / 2);
}

// A mean of 0 has an infinite deviance as soon as another count is met: it is no prediction.
inline bool allows(const GainParams& p, std::int64_t left, std::int64_t right) {
  return p.criterion != Criterion::poisson || (sum_g(left) < 0 && sum_g(right) < 0);
}

void score_logarithms(const GainParams& params, const Pass& pass, SplitScratch& scratch) {
  const GainParams p = params;
  double* ARBOOST_RESTRICT scores = scratch.scores.data();
  for (std::size_t b = 0; b < pass.n; ++b) scores[b] = 0;
  for (int k = 0; k < p.outputs; ++k) {
    const std::int64_t* ARBOOST_RESTRICT prefix =
        scratch.prefix.data() + static_cast<std::size_t>(k) * scratch.stride;
    const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[k];
    const std::int64_t total = pass.totals[k];
    for (std::size_t b = 0; b < pass.n; ++b) {
      const std::int64_t left = prefix[b] + extra, right = total - left;
      scores[b] +=
          log_score(p, sum_g(left), sum_h(left)) + log_score(p, sum_g(right), sum_h(right));
    }
  }
  const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
  for (std::size_t b = 0; b < pass.n; ++b) {
    std::int64_t left_h = 0, right_h = 0;
    bool allowed = true;
    for (int k = 0; k < p.outputs; ++k) {
      const std::int64_t left = scratch.prefix[static_cast<std::size_t>(k) * scratch.stride + b] +
                                (pass.extra == nullptr ? 0 : pass.extra[k]);
      const std::int64_t right = pass.totals[k] - left;
      left_h += sum_h(left);
      right_h += sum_h(right);
      allowed = allowed && allows(p, left, right);
    }
    if (!allowed || left_h < min_h || right_h < min_h) scores[b] = forbidden;
  }
}

// Forbids splits that leave a side with too few rows; the count is the last channel.
void require_counts(const GainParams& p, const Pass& pass, SplitScratch& scratch) {
  if (p.channels == p.outputs) return;
  const std::int64_t* prefix = scratch.prefix.data() + p.outputs * scratch.stride;
  const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[p.outputs];
  for (std::size_t b = 0; b < pass.n; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const bool enough = left >= p.min_count && pass.totals[p.outputs] - left >= p.min_count;
    if (!enough) scratch.scores[b] = forbidden;
  }
}

// Index of the first highest score, when that is above `floor`; else n. Eight running maxima, so
// that the loop vectorises; the array has room for the padding behind n.
std::size_t first_best(double* scores, std::size_t n, double floor) {
  constexpr std::size_t lanes = 8;
  double highest[lanes];
  for (std::size_t j = 0; j < lanes; ++j) highest[j] = scores[n + j] = forbidden;
  for (std::size_t b = 0; b < n; b += lanes) {
    double block[lanes];
    std::memcpy(block, scores + b, sizeof block);
    for (std::size_t j = 0; j < lanes; ++j)
      highest[j] = block[j] > highest[j] ? block[j] : highest[j];
  }
  double best = floor;
  for (double score : highest) best = score > best ? score : best;
  if (!(best > floor)) return n;
  std::size_t index = 0;
  while (scores[index] != best) ++index;
  return index;
}

// The score of the split after a prefix entry, as score_one_output<true> has it.
inline double exact_score(const GainParams& p, const Pass& pass, std::int64_t prefix) {
  const std::int64_t left = prefix + (pass.extra == nullptr ? 0 : pass.extra[0]);
  const std::int64_t right = pass.totals[0] - left;
  return split_score<true, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
}

constexpr std::size_t rough_lanes = 16;  // scores that are compared at once

// A bit for each of 16 numbers that is not below the least.
inline std::uint32_t lanes_from(const std::int32_t* rough, std::int32_t least) {
#if defined(__AVX512F__)
  return _mm512_cmpge_epi32_mask(_mm512_loadu_si512(rough), _mm512_set1_epi32(least));
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

// Among the entries of one group whose rough scores are not below the least, the first of the
// highest score above `floor`; or the group's end. Many entries are nearly equal where the rows
// are.
std::size_t first_best_of_lanes(const GainParams& params, const Pass& pass, std::size_t group,
                                std::int32_t least, double floor, SplitScratch& scratch) {
  const GainParams p = params;
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data() + group;
  const std::int32_t* ARBOOST_RESTRICT rough = scratch.rough.data() + group;
  double* ARBOOST_RESTRICT scores = scratch.scores.data() + group;
  const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[0];
  const std::int64_t total = pass.totals[0];
  for (std::size_t j = 0; j < rough_lanes; ++j) {
    const std::int64_t left = prefix[j] + extra;
    const std::int64_t right = total - left;
    const double score =
        split_score<true, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
    scores[j] = rough[j] >= least ? score : forbidden;
  }
  double best = floor;
  for (std::size_t j = 0; j < rough_lanes; ++j) best = scores[j] > best ? scores[j] : best;
  if (!(best > floor)) return group + rough_lanes;
  std::size_t index = 0;
  while (scores[index] != best) ++index;
  return group + index;
}

// What score_one_output<true> and first_best find together, at half the price: scores are computed
// as floats, and only those that may be the highest as doubles. A float score is a quotient of sums
// of positive terms, so its relative error is a few units of 6e-8; `slack` is ten times that.
// Floats >= 0 are ordered like the integers of the same bits, whose maximum vectorises everywhere.
std::size_t first_best_plain(const GainParams& params, const Pass& pass, double floor,
                             SplitScratch& scratch) {
  constexpr double slack = 4e-6;
  constexpr std::size_t lanes = rough_lanes;
  const GainParams p = params;
  std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  std::int32_t* ARBOOST_RESTRICT rough = scratch.rough.data();
  const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[0];
  const std::int64_t total = pass.totals[0];
  // Whole groups of lanes: behind the last entry come splits with nothing on the right.
  for (std::size_t j = 0; j < lanes; ++j) prefix[pass.n + j] = total;
  const std::size_t n = (pass.n + lanes - 1) & ~(lanes - 1);
  std::int32_t highest = -1;
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
  if (highest < 0) return pass.n;
  const double roughly = std::bit_cast<float>(highest);
  if (roughly * (1 + slack) <= floor) return pass.n;
  const auto least = std::bit_cast<std::int32_t>(static_cast<float>(roughly * (1 - slack)));
  std::size_t index = pass.n;
  for (std::size_t group = 0; group < n; group += lanes) {
    const std::uint32_t hits = lanes_from(rough + group, least);
    if (std::popcount(hits) > 2) {
      const std::size_t found = first_best_of_lanes(p, pass, group, least, floor, scratch);
      if (found < group + lanes) floor = scratch.scores[index = found];
      continue;
    }
    for (std::uint32_t left = hits; left != 0; left &= left - 1) {
      const std::size_t b = group + static_cast<std::size_t>(std::countr_zero(left));
      const double score = exact_score(p, pass, prefix[b]);
      if (!(score > floor)) continue;
      floor = scratch.scores[b] = score;
      index = b;
    }
  }
  return index;
}

// The score of the split after entry b, as score_outputs<true> has it.
inline double exact_score_of_outputs(const GainParams& p, const Pass& pass, std::size_t b,
                                     const SplitScratch& scratch) {
  double score = 0;
  for (int k = 0; k < p.outputs; ++k) {
    const std::int64_t left =
        scratch.prefix[k * scratch.stride + b] + (pass.extra == nullptr ? 0 : pass.extra[k]);
    const std::int64_t right = pass.totals[k] - left;
    score += split_score<true, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
  }
  return score;
}

// One output's rough scores of n splits, and the hessians on their left, added to those of the
// outputs before.
template <bool is_first>
void add_rough(const GainParams& p, const Pass& pass, std::size_t n, int output,
               SplitScratch& scratch) {
  const float lambda = static_cast<float>(p.reg_lambda);
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data() + output * scratch.stride;
  float* ARBOOST_RESTRICT rough = scratch.rough_sums.data();
  std::int64_t* ARBOOST_RESTRICT hessians = scratch.hessians.data();
  const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[output];
  const std::int64_t total = pass.totals[output];
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const std::int64_t right = total - left;
    const auto left_g = static_cast<float>(sum_g(left)), right_g = static_cast<float>(sum_g(right));
    const float left_h = static_cast<float>(sum_h(left)) + lambda;
    const float right_h = static_cast<float>(sum_h(right)) + lambda;
    const float score =
        (left_g * left_g * right_h + right_g * right_g * left_h) / (left_h * right_h);
    rough[b] = is_first ? score : rough[b] + score;
    hessians[b] = (is_first ? 0 : hessians[b]) + (left & 0xffffffff);
  }
}

// Rough scores of n splits, the last of which is none, as integers like those of first_best_plain;
// -1 where a split is forbidden. Returns the highest.
std::int32_t rough_scores(const GainParams& p, const Pass& pass, std::size_t n,
                          SplitScratch& scratch) {
  std::int64_t total_h = 0;
  for (int k = 0; k < p.outputs; ++k) {
    k == 0 ? add_rough<true>(p, pass, n, k, scratch) : add_rough<false>(p, pass, n, k, scratch);
    total_h += sum_h(pass.totals[k]);
  }
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
    const std::int64_t extra = pass.extra == nullptr ? 0 : pass.extra[p.outputs];
    const std::int64_t least = p.min_count - extra;
    const std::int64_t most = pass.totals[p.outputs] - extra - p.min_count;
    for (std::size_t b = 0; b < n; ++b)
      rough[b] = (counts[b] >= least) & (counts[b] <= most) ? rough[b] : -1;
  }
  std::int32_t highest = -1;
  for (std::size_t b = 0; b < n; ++b) highest = rough[b] > highest ? rough[b] : highest;
  return highest;
}

// The same as first_best_plain for several outputs, or counted rows.
std::size_t first_best_of_outputs(const GainParams& p, const Pass& pass, double floor,
                                  SplitScratch& scratch) {
  constexpr std::size_t lanes = rough_lanes;
  const double slack = 4e-6 + 1e-7 * p.outputs;
  const std::size_t end = pass.n, n = (end + lanes - 1) & ~(lanes - 1);
  for (int c = 0; c < p.channels; ++c)
    for (std::size_t j = 0; j < lanes; ++j)
      scratch.prefix[c * scratch.stride + end + j] = pass.totals[c];
  const std::int32_t highest = rough_scores(p, pass, n, scratch);
  if (highest < 0) return end;
  const double roughly = std::bit_cast<float>(highest);
  if (roughly * (1 + slack) <= floor) return end;
  const auto least = std::bit_cast<std::int32_t>(static_cast<float>(roughly * (1 - slack)));
  const std::int32_t* rough = scratch.rough.data();
  std::size_t index = end, last = end;
  for (std::size_t group = 0; group < n; group += lanes)
    for (std::uint32_t hits = lanes_from(rough + group, least); hits != 0; hits &= hits - 1) {
      const std::size_t b = group + static_cast<std::size_t>(std::countr_zero(hits));
      bool repeated = last < end;
      for (int k = 0; repeated && k < p.outputs; ++k) {
        const std::int64_t* prefix = scratch.prefix.data() + k * scratch.stride;
        repeated = prefix[b] == prefix[last];
      }
      if (repeated) continue;
      last = b;
      const double score = exact_score_of_outputs(p, pass, b, scratch);
      if (!(score > floor)) continue;
      floor = scratch.scores[b] = score;
      index = b;
    }
  return index;
}

// Index of the first highest score above `floor`, which is then in scratch.scores; else pass.n.
std::size_t find_best(const GainParams& p, const Pass& pass, double floor, SplitScratch& scratch) {
  const bool plain = is_plain(p);
  const bool fits_floats = p.reg_lambda < 1e12;  // squares of sums below 2^31, times this, do
  if (plain && p.channels == 1 && fits_floats) return first_best_plain(p, pass, floor, scratch);
  const bool divides = p.reg_lambda == 0 || p.reg_lambda > 1e-15;  // as a float, too
  if (plain && fits_floats && divides) return first_best_of_outputs(p, pass, floor, scratch);
  if (p.criterion != Criterion::quadratic)
    score_logarithms(p, pass, scratch);
  else if (p.bounded)
    score_bounded(p, pass, scratch);
  else if (p.outputs == 1)
    plain ? score_one_output<true>(p, pass, scratch) : score_one_output<false>(p, pass, scratch);
  else
    plain ? score_outputs<true>(p, pass, scratch) : score_outputs<false>(p, pass, scratch);
  require_counts(p, pass, scratch);
  return first_best(scratch.scores.data(), pass.n, floor);
}

void run_pass(const GainParams& p, const Pass& pass, bool missing_left, SplitScratch& scratch,
              FeatureSplit* best) {
  const std::size_t index = find_best(p, pass, best->score, scratch);
  if (index == pass.n) return;
  best->score = scratch.scores[index];
  best->bin = static_cast<std::uint32_t>(index);
  best->missing_left = missing_left;
  for (int c = 0; c < p.channels; ++c)
    scratch.left[c] =
        scratch.prefix[c * scratch.stride + index] + (pass.extra == nullptr ? 0 : pass.extra[c]);
}

// Both passes over prefix sums of `n` entries; `missing` are the sums of the missing rows or null.
FeatureSplit best_of_prefix(const GainParams& p, std::size_t n, const std::int64_t* totals,
                            const std::int64_t* missing, double floor, SplitScratch& scratch) {
  FeatureSplit best;
  best.score = floor;
  // With missing rows on the right, the last entry splits them from all the others.
  const std::size_t n_right = missing == nullptr ? n - 1 : n;
  run_pass(p, {n_right, totals, nullptr}, false, scratch, &best);
  if (missing != nullptr) run_pass(p, {n - 1, totals, missing}, true, scratch, &best);
  best.found = best.score > floor;
  best.missing_seen = missing != nullptr;
  return best;
}

bool any_nonzero(const std::int64_t* values, int n) {
  for (int c = 0; c < n; ++c)
    if (values[c] != 0) return true;
  return false;
}

// Running sums of every channels-th number. Four at a time: one addition waits for the group
// before, the others do not.
void prefix_sums(const std::int64_t* values, std::size_t n, std::size_t channels,
                 std::int64_t* ARBOOST_RESTRICT sums) {
  std::int64_t before = 0;
  std::size_t b = 0;
  for (; b + 4 <= n; b += 4) {
    const std::int64_t* v = values + b * channels;
    const std::int64_t one = v[0], two = one + v[channels];
    const std::int64_t last = v[2 * channels] + v[3 * channels];
    sums[b] = before + one;
    sums[b + 1] = before + two;
    sums[b + 2] = before + (two + v[2 * channels]);
    sums[b + 3] = before += two + last;
  }
  for (; b < n; ++b) sums[b] = before += values[b * channels];
}

FeatureSplit find_split(const GainParams& p, const std::int64_t* feature_hist, std::size_t n_bins,
                        bool has_missing, const std::int64_t* totals, double floor,
                        SplitScratch& scratch) {
  const auto channels = static_cast<std::size_t>(p.channels);
  if (channels == 1)
    prefix_sums(feature_hist, n_bins, 1, scratch.prefix.data());
  else
    for (std::size_t c = 0; c < channels; ++c)
      prefix_sums(feature_hist + c, n_bins, channels, scratch.prefix.data() + c * scratch.stride);
  const std::int64_t* missing = feature_hist + n_bins * channels;
  const bool use_missing = has_missing && any_nonzero(missing, p.channels);
  return best_of_prefix(p, n_bins, totals, use_missing ? missing : nullptr, floor, scratch);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
