// The rows of a small node -> the best of one random cut of each of some features (grow/cuts.cpp
// says what a cut is). About 1 ns a row and feature.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include "grow/cut.h"
#include "grow/small.h"
#include "grow/split.h"
#include "kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t code_lanes = 16, sum_lanes = 8;
static_assert(code_lanes <= padded_rows && sum_lanes <= padded_rows);

struct CodeRange {
  std::uint32_t low, high;  // of values; low is above high where there are none
  bool missing;
};

// Codes of the rows into scratch.codes, in whole registers: behind the last one comes the first.
void gather_codes(const FewRows& rows, std::size_t feature, std::uint8_t* ARBOOST_RESTRICT codes) {
  const CodesOf<std::uint8_t> stored(*rows.codes, rows.codes->where[feature].store, rows.n);
  for (std::size_t i = 0; i < rows.n; ++i)
    codes[i] = static_cast<std::uint8_t>(stored(rows.elements[i]));
  if (const std::uint8_t* table = rows.table(feature))
    for (std::size_t i = 0; i < rows.n; ++i) codes[i] = table[codes[i]];
  for (std::size_t i = rows.n; i % code_lanes != 0; ++i) codes[i] = codes[0];
}

template <bool with_missing>
CodeRange range_of(const std::uint8_t* codes, std::size_t n, std::uint32_t n_bins) {
  std::uint8_t low[code_lanes], high[code_lanes], top[code_lanes];
  for (std::size_t j = 0; j < code_lanes; ++j) {
    low[j] = 255;
    high[j] = top[j] = 0;
  }
  const auto missing = static_cast<std::uint8_t>(n_bins);
  for (std::size_t i = 0; i < n; i += code_lanes)
    for (std::size_t j = 0; j < code_lanes; ++j) {
      const std::uint8_t code = codes[i + j];
      const std::uint8_t value = with_missing && code == missing ? std::uint8_t{0} : code;
      low[j] = code < low[j] ? code : low[j];
      high[j] = value > high[j] ? value : high[j];
      if (with_missing) top[j] = code > top[j] ? code : top[j];
    }
  for (std::size_t half = code_lanes / 2; half > 0; half /= 2)
    for (std::size_t j = 0; j < half; ++j) {
      low[j] = low[j + half] < low[j] ? low[j + half] : low[j];
      high[j] = high[j + half] > high[j] ? high[j + half] : high[j];
      if (with_missing) top[j] = top[j + half] > top[j] ? top[j + half] : top[j];
    }
  return {low[0], high[0], with_missing && top[0] == missing};
}

// sums[c * stride] = the sums of the rows whose codes are in [first, last].
void sum_codes(const FewRows& rows, std::size_t channels, std::uint32_t first, std::uint32_t last,
               const std::uint8_t* ARBOOST_RESTRICT codes, std::int64_t* sums, std::size_t stride) {
  const auto base = static_cast<std::uint8_t>(first);
  const auto width = static_cast<std::uint8_t>(last - first);
  const auto is_in = [=](std::uint8_t code) {
    return static_cast<std::uint8_t>(code - base) <= width;
  };
  const std::int64_t* ARBOOST_RESTRICT values = rows.values;
  // By masks: from `is_in(code) ? value : 0` GCC 12.2 makes wrong sums with AVX2 and AVX-512.
  if (channels == 1) {  // rows behind the last one count nothing
    std::int64_t lanes[sum_lanes] = {};
    for (std::size_t i = 0; i < rows.n; i += sum_lanes)
      for (std::size_t j = 0; j < sum_lanes; ++j)
        lanes[j] += values[i + j] & -std::int64_t{is_in(codes[i + j])};
    std::int64_t sum = 0;
    for (const std::int64_t lane : lanes) sum += lane;
    sums[0] = sum;
    return;
  }
  for (std::size_t c = 0; c < channels; ++c) sums[c * stride] = 0;
  for (std::size_t i = 0; i < rows.n; ++i) {
    const std::int64_t mask = -std::int64_t{is_in(codes[i])};
    for (std::size_t c = 0; c < channels; ++c) sums[c * stride] += values[i * channels + c] & mask;
  }
}

// The cuts that wait to be scored.
struct Cuts {
  struct Cut {
    std::uint32_t feature, bin;
    bool missing_seen, missing_left;
  };
  Cut cuts[few_candidates];
  std::size_t n = 0;
};

void score_cuts(const GainParams& p, const FewRows& rows, Cuts& waiting, SplitScratch& scratch,
                NodeSplit& best) {
  const std::size_t n = waiting.n;
  if (n == 0) return;
  waiting.n = 0;
  const std::size_t found = find_best(p, {n, rows.totals, nullptr}, best.split.score, scratch);
  if (found == n) return;
  const Cuts::Cut& cut = waiting.cuts[found];
  best.feature = static_cast<std::int32_t>(cut.feature);
  best.split = {};
  best.split.score = scratch.scores[found];
  best.split.found = true;
  best.split.bin = cut.bin;
  best.split.missing_seen = cut.missing_seen;
  best.split.missing_left = cut.missing_left;
  for (int c = 0; c < p.channels; ++c)
    best.left_sums[c] = scratch.prefix[c * scratch.stride + found];
}

// Adds the cut of a feature to those that wait; twice where missing rows may go both ways. Returns
// false where its rows are all alike.
bool add_cut(const FewRows& rows, const CutDraws& draws, std::uint32_t feature,
             std::size_t channels, Cuts& waiting, SplitScratch& scratch) {
  const std::uint32_t n_bins = rows.codes->n_bins[feature];
  std::uint8_t* codes = scratch.codes.data();
  gather_codes(rows, feature, codes);
  const bool may_miss = rows.codes->has_missing[feature] != 0;
  const CodeRange range =
      may_miss ? range_of<true>(codes, rows.n, n_bins) : range_of<false>(codes, rows.n, n_bins);
  if (range.low == range.high ? !range.missing : range.low > range.high) return false;
  const bool is_cut = range.low < range.high;  // else values on the left, missing rows on the right
  const std::uint32_t bin = is_cut ? draw_cut(draws, feature, range.low, range.high) : n_bins - 1;
  std::int64_t* sums = scratch.prefix.data() + waiting.n;
  sum_codes(rows, channels, 0, bin, codes, sums, scratch.stride);
  waiting.cuts[waiting.n++] = {feature, bin, range.missing, false};
  if (!is_cut || !range.missing) return true;
  sum_codes(rows, channels, n_bins, n_bins, codes, sums + 1, scratch.stride);
  for (std::size_t c = 0; c < channels; ++c) {
    std::int64_t* both = sums + c * scratch.stride;
    both[1] += both[0];
  }
  waiting.cuts[waiting.n++] = {feature, bin, true, true};
  return true;
}

std::size_t find_cut_few(const GainParams& p, const FewRows& rows, const CutDraws& draws,
                         FeatureList features, SplitScratch& scratch, NodeSplit& best) {
  Cuts waiting;
  std::size_t n_varying = 0;
  for (std::size_t j = 0; j < features.n; ++j) {
    if (waiting.n + 2 > few_candidates) score_cuts(p, rows, waiting, scratch, best);
    n_varying += add_cut(rows, draws, features.first[j], static_cast<std::size_t>(p.channels),
                         waiting, scratch)
                     ? 1
                     : 0;
  }
  score_cuts(p, rows, waiting, scratch, best);
  return n_varying;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
