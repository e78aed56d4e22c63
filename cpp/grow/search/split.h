// Histogram of one feature in a node -> its best split. About 1 ns a bin. Single-threaded.
//
// For each bin b the rows with codes <= b go left, and the scores of both sides
// (grow/search/gain.h) are added; with several outputs, over all of them. Missing values are tried
// on the right and on the left.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <cstring>  // memcpy

#include "grow/search/candidates.h"
#include "grow/search/gain.h"
#include "grow/search/logarithms.h"
#include "grow/search/rough.h"
#include "grow/search/search_data.h"

namespace arboost::ARBOOST_ISA {
namespace {

// The scores after entries [begin, end).
template <bool plain>
void score_one_output(const GainParams& params, const Pass& pass, std::size_t begin,
                      std::size_t end, SplitScratch& scratch) {
  const GainParams p = params;  // a copy of its own lets the compiler keep it in registers
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  double* ARBOOST_RESTRICT scores = scratch.scores.data();
  const std::int64_t extra = pass.extra_of(0);
  const std::int64_t total = pass.totals[0];
  for (std::size_t b = begin; b < end; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const std::int64_t right = total - left;
    const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
    const double score = score_of_sides<plain>(p, left, right);
    const bool allowed = (left_h >= p.min_h) & (right_h >= p.min_h);
    scores[b] = allowed ? score : forbidden;
  }
}

// Under monotone constraints: steps within the node's bounds, and in order.
void score_bounded(const GainParams& params, const Pass& pass, std::size_t begin, std::size_t end,
                   SplitScratch& scratch) {
  const GainParams p = params;
  const std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  double* ARBOOST_RESTRICT scores = scratch.scores.data();
  const std::int64_t extra = pass.extra_of(0);
  const double direction = p.direction;
  for (std::size_t b = begin; b < end; ++b) {
    const std::int64_t left = prefix[b] + extra;
    const std::int64_t right = pass.totals[0] - left;
    const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
    const double left_g = sum_g(left), right_g = sum_g(right);
    const double left_step = bounded_step(p, left_g, left_h);
    const double right_step = bounded_step(p, right_g, right_h);
    const double score = score_of_step(p, left_g, left_h, left_step) +
                         score_of_step(p, right_g, right_h, right_step);
    const bool ordered = direction * (right_step - left_step) >= 0;
    // Missing rows alone on the left or alone on the right are the same split, apart from the
    // constrained order: only the latter is tried.
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
      const std::int64_t left = pass.left(scratch, k, b), right = pass.totals[k] - left;
      left_h += sum_h(left);
      right_h += sum_h(right);
      score += score_of_sides<plain>(p, left, right);
    }
    const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
    scores[b] = left_h >= min_h && right_h >= min_h ? score : forbidden;
  }
}

// Forbids splits that leave a side with too few rows; the count is the last channel.
void require_counts(const GainParams& p, const Pass& pass, SplitScratch& scratch) {
  if (p.channels == p.outputs) return;
  for (std::size_t b = 0; b < pass.n; ++b) {
    const std::int64_t left = pass.left(scratch, p.outputs, b);
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

void score_errors(const GainParams& p, const Pass& pass, SplitScratch& scratch) {
  const double key = error_key(p, pass.totals);
  const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
  for (std::size_t b = 0; b < pass.n; ++b) {
    const auto left = [&](int k) { return pass.left(scratch, k, b); };
    std::int64_t left_h = 0, right_h = 0;
    for (int k = 0; k < p.outputs; ++k) {
      left_h += sum_h(left(k));
      right_h += sum_h(pass.totals[k] - left(k));
    }
    const bool allowed = left_h >= min_h && right_h >= min_h;
    scratch.scores[b] = allowed ? error_score(p, pass.totals, key, left) : forbidden;
  }
}

// Index of the first highest score above `floor`, which is then in scratch.scores; else pass.n.
std::size_t find_best(const GainParams& p, const Pass& pass, double floor, SplitScratch& scratch) {
  if (p.criterion == Criterion::error) {
    score_errors(p, pass, scratch);
    require_counts(p, pass, scratch);
    return first_best(scratch.scores.data(), pass.n, floor);
  }
  if (p.criterion != Criterion::quadratic) return first_best_of_logarithms(p, pass, floor, scratch);
  const bool plain = is_plain(p);
  const bool fits_floats = p.reg_lambda < 1e12;  // squares of sums below 2^31, times this, do
  if (plain && p.channels == 1 && fits_floats) return first_best_plain(p, pass, floor, scratch);
  const bool divides = p.reg_lambda == 0 || p.reg_lambda > 1e-15;  // as a float, too
  if (plain && fits_floats && divides) return first_best_of_outputs(p, pass, floor, scratch);
  const auto score_one = p.bounded ? score_bounded
                         : plain   ? score_one_output<true>
                                   : score_one_output<false>;
  if (p.channels == 1 && fits_floats)
    return first_best_limited(p, pass, floor, scratch, [&](std::size_t begin, std::size_t end) {
      score_one(p, pass, begin, end, scratch);
    });
  if (p.outputs == 1)
    score_one(p, pass, 0, pass.n, scratch);
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
  for (int c = 0; c < p.channels; ++c) scratch.left[c] = pass.left(scratch, c, index);
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
  best.is_valid = best.score > floor;
  best.missing_seen = missing != nullptr;
  return best;
}

bool any_nonzero(const std::int64_t* values, int n) {
  for (int c = 0; c < n; ++c)
    if (values[c] != 0) return true;
  return false;
}

// Channels that tell whether rows are there for the split. Counts that only thinning needs do not:
// rows of zero sums are overlooked as they are without counts, where rows are sorted.
int telling_channels(const GainParams& p) {
  return p.apart >= 0 && p.min_count <= 1 ? p.outputs : p.channels;
}

// Prefix sums of every channels-th number, four at a time: only one addition depends on the
// previous group.
void prefix_sums(const std::int64_t* values, std::size_t n, std::size_t channels,
                 std::int64_t* ARBOOST_RESTRICT sums) {
  std::int64_t before = 0;
  std::size_t b = 0;
  for (; b + 4 <= n; b += 4) {
    const std::int64_t* v = values + b * channels;
    const std::int64_t first_sum = v[0], second_sum = first_sum + v[channels];
    const std::int64_t last = v[2 * channels] + v[3 * channels];
    sums[b] = before + first_sum;
    sums[b + 1] = before + second_sum;
    sums[b + 2] = before + (second_sum + v[2 * channels]);
    sums[b + 3] = before += second_sum + last;
  }
  for (; b < n; ++b) sums[b] = before += values[b * channels];
}

// Keeps the entries of bins that have rows, which are counted in the last channel; returns their
// number.
std::size_t keep_counted(const std::int64_t* feature_hist, std::size_t n_bins, std::size_t channels,
                         SplitScratch& scratch) {
  std::size_t n = 0;
  for (std::size_t b = 0; b < n_bins; ++b) {
    scratch.bins[b] = static_cast<std::uint32_t>(b);
    if (feature_hist[(b + 1) * channels - 1] != 0) copy_entry(b, n++, channels, scratch);
  }
  return n;
}

// The best split after any of the candidates.
FeatureSplit find_threshold(const GainParams& p, const std::int64_t* feature_hist,
                            std::size_t n_bins, bool has_missing, const std::int64_t* totals,
                            double floor, SplitScratch& scratch) {
  const auto channels = static_cast<std::size_t>(p.channels);
  if (channels == 1)
    prefix_sums(feature_hist, n_bins, 1, scratch.prefix.data());
  else
    for (std::size_t c = 0; c < channels; ++c)
      prefix_sums(feature_hist + c, n_bins, channels, scratch.prefix.data() + c * scratch.stride);
  const std::int64_t* missing = feature_hist + n_bins * channels;
  if (!has_missing || !any_nonzero(missing, telling_channels(p))) missing = nullptr;
  if (p.apart < 0) return best_of_prefix(p, n_bins, totals, missing, floor, scratch);
  const std::size_t n_entries = keep_counted(feature_hist, n_bins, channels, scratch);
  if (n_entries == 0) return {};
  Thinning whole;
  const std::size_t n = thin<false>(p, n_entries, true, whole, scratch);
  FeatureSplit best = best_of_prefix(p, n, totals, missing, floor, scratch);
  best.bin = scratch.bins[best.bin];
  return best;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
