// The rows of a small node -> the best of one random threshold for each of some features
// (grow/split/random_cuts.cpp). About 1 ns a row and feature. Single-threaded.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>  // 16 codes at once
#endif

#include "grow/search/gain.h"
#include "grow/search/random_cut.h"
#include "grow/search/search_data.h"
#include "grow/search/small.h"
#include "grow/search/split.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t code_lanes = 16, sum_lanes = 8;
constexpr std::size_t handful = 32;  // rows
static_assert(code_lanes <= padded_rows && sum_lanes <= padded_rows);

struct CodeRange {
  std::uint32_t low, high;  // of values; low is above high where there are none
  bool missing;
};

// Room for the codes of one feature in scratch.codes.
inline std::size_t code_stride(std::size_t n) {
  return (n + code_lanes - 1) / code_lanes * code_lanes;
}

// Codes of the rows, feature by feature, padded to whole registers with the first row's code. The
// features of a row are contiguous, and are read together while the rows are few.
void gather_codes(const FewRows& rows, FeatureList features, std::uint8_t* ARBOOST_RESTRICT codes) {
  const Codes& from = *rows.codes;
  const std::size_t stride = code_stride(rows.n);
  std::size_t stores[cut_group];
  for (std::size_t k = 0; k < features.n; ++k) stores[k] = from.where[features.first[k]].store;
  if (reads_by_row(from, rows.n)) {
    for (std::size_t i = 0; i < rows.n; ++i) {
      const std::uint8_t* row = from.by_row.data() + row_of(rows.elements[i]) * from.row_stride;
      for (std::size_t k = 0; k < features.n; ++k) codes[k * stride + i] = row[stores[k]];
    }
  } else {
    for (std::size_t k = 0; k < features.n; ++k) {
      const std::uint8_t* column = from.by_column.data() + stores[k] * from.n_rows;
      for (std::size_t i = 0; i < rows.n; ++i)
        codes[k * stride + i] = column[row_of(rows.elements[i])];
    }
  }
  for (std::size_t k = 0; k < features.n; ++k) {
    std::uint8_t* feature_codes = codes + k * stride;
    if (const std::uint8_t* table = rows.table(features.first[k]))
      for (std::size_t i = 0; i < rows.n; ++i) feature_codes[i] = table[feature_codes[i]];
    for (std::size_t i = rows.n; i < stride; ++i) feature_codes[i] = feature_codes[0];
  }
}

#if defined(__SSE2__) || defined(_M_X64)
// The lowest or highest of 16 bytes.
template <class Better>
inline std::uint32_t best_of_lanes(__m128i lanes, Better better) {
  lanes = better(lanes, _mm_srli_si128(lanes, 8));
  lanes = better(lanes, _mm_srli_si128(lanes, 4));
  lanes = better(lanes, _mm_srli_si128(lanes, 2));
  lanes = better(lanes, _mm_srli_si128(lanes, 1));
  return static_cast<std::uint8_t>(_mm_cvtsi128_si32(lanes));
}

template <bool with_missing>
CodeRange range_of(const std::uint8_t* codes, std::size_t n, std::uint32_t n_bins) {
  const __m128i missing = _mm_set1_epi8(static_cast<char>(n_bins));
  __m128i low = _mm_set1_epi8(-1), high = _mm_setzero_si128(), top = high;
  for (std::size_t i = 0; i < n; i += code_lanes) {
    const __m128i code = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
    const __m128i value =
        with_missing ? _mm_andnot_si128(_mm_cmpeq_epi8(code, missing), code) : code;
    low = _mm_min_epu8(low, code);
    high = _mm_max_epu8(high, value);
    if (with_missing) top = _mm_max_epu8(top, code);
  }
  const auto lower = [](__m128i a, __m128i b) { return _mm_min_epu8(a, b); };
  const auto higher = [](__m128i a, __m128i b) { return _mm_max_epu8(a, b); };
  return {best_of_lanes(low, lower), best_of_lanes(high, higher),
          with_missing && best_of_lanes(top, higher) == n_bins};
}
#else
template <bool with_missing>
CodeRange range_of(const std::uint8_t* codes, std::size_t n, std::uint32_t n_bins) {
  CodeRange range{255, 0, false};
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = codes[i], value = with_missing && code == n_bins ? 0 : code;
    range.low = code < range.low ? code : range.low;
    range.high = value > range.high ? value : range.high;
    range.missing |= with_missing && code == n_bins;
  }
  return range;
}
#endif

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

// Threshold of a feature; an `unnamed` bin is to be drawn again between low and high.
constexpr std::uint32_t unnamed = ~std::uint32_t{0};
struct Cut {
  std::uint32_t feature, bin;
  bool missing_seen, missing_left;
  std::uint32_t low, high;
  const std::uint8_t* codes = nullptr;  // of the rows, where they have been gathered
};

// The random threshold of a feature, from the range of its rows' codes. If all values are equal,
// they go left and missing values right.
inline Cut draw_in_range(const CutDraws& draws, std::uint32_t feature, std::uint32_t n_bins,
                         const CodeRange& range) {
  if (range.low == range.high) return {feature, n_bins - 1, true, false, range.low, range.high};
  const double* values = draws.values[feature];
  const std::uint32_t bin = draw_cut(
      cut_key(draws.key, feature), [values](std::uint32_t b) { return values[b]; },
      CutDraws::length, range.low, range.high);
  return {feature, bin, range.missing, false, range.low, range.high};
}

// The same as below for a handful of rows of one channel without missing values. All loops have one
// constant length: padded rows have the first row's codes and zero weight. Rows are compared by
// value, so that only the best threshold needs its bin.
template <std::size_t lanes>
std::size_t draw_handful(const FewRows& rows, const CutDraws& draws, FeatureList features,
                         std::int64_t* ARBOOST_RESTRICT sums, Cut* cuts) {
  const std::uint8_t* of_row[lanes];
  std::int64_t row_values[lanes];
  for (std::size_t i = 0; i < lanes; ++i) {
    const std::size_t row = row_of(rows.elements[i < rows.n ? i : 0]);
    of_row[i] = rows.codes->by_row.data() + row * rows.codes->row_stride;
    row_values[i] = rows.values[i];
  }
  std::size_t n = 0;
  for (std::size_t k = 0; k < features.n; ++k) {
    const std::uint32_t f = features.first[k];
    const std::size_t store = rows.codes->where[f].store;
    std::uint32_t codes[lanes];
    for (std::size_t i = 0; i < lanes; ++i) codes[i] = of_row[i][store];
    if (const std::uint8_t* table = rows.table(f))
      for (std::size_t i = 0; i < lanes; ++i) codes[i] = table[codes[i]];
    std::uint32_t low = codes[0], high = codes[0];
    for (std::size_t i = 1; i < lanes; ++i) {
      low = codes[i] < low ? codes[i] : low;
      high = codes[i] > high ? codes[i] : high;
    }
    if (low == high) continue;
    const double* values = draws.values[f];
    const double at = draw_between(cut_key(draws.key, f), values[low], values[high]);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lanes; ++i) {
      const bool is_left = ((values[codes[i]] <= at) | (codes[i] == low)) & (codes[i] != high);
      sum += row_values[i] & -std::int64_t{is_left};
    }
    sums[n] = sum;
    cuts[n++] = {f, unnamed, false, false, low, high};
    if (rows.n == 2) break;  // all cuts of two rows are one
  }
  return n;
}

bool is_handful(const FewRows& rows, FeatureList features, std::size_t channels) {
  if (rows.n > handful || channels > 1) return false;
  for (std::size_t k = 0; k < features.n; ++k)
    if (rows.codes->has_missing[features.first[k]] != 0) return false;
  return true;
}

// The cuts of up to cut_group features, with the sums of their left sides in scratch.prefix; twice
// that of a feature whose missing rows may go both ways. Returns how many there are.
std::size_t draw_cuts(const FewRows& rows, const CutDraws& draws, FeatureList features,
                      std::size_t channels, SplitScratch& scratch, Cut* cuts) {
  if (is_handful(rows, features, channels)) {
    const auto draw = rows.n <= 4    ? draw_handful<4>
                      : rows.n <= 8  ? draw_handful<8>
                      : rows.n <= 16 ? draw_handful<16>
                                     : draw_handful<32>;
    return draw(rows, draws, features, scratch.prefix.data(), cuts);
  }
  gather_codes(rows, features, scratch.codes.data());
  const Codes& from = *rows.codes;
  CodeRange ranges[cut_group];
  std::uint32_t varying[cut_group];  // features
  const std::uint8_t* codes_of[cut_group];
  std::size_t n_varying = 0;
  for (std::size_t k = 0; k < features.n; ++k) {
    const std::uint32_t f = features.first[k], n_bins = from.n_bins[f];
    const std::uint8_t* codes = scratch.codes.data() + k * code_stride(rows.n);
    const CodeRange range = from.has_missing[f] != 0 ? range_of<true>(codes, rows.n, n_bins)
                                                     : range_of<false>(codes, rows.n, n_bins);
    if (range.low == range.high ? !range.missing : range.low > range.high) continue;
    codes_of[n_varying] = codes;
    ranges[n_varying] = range;
    varying[n_varying++] = f;
  }
  Cut drawn[cut_group];
  for (std::size_t j = 0; j < n_varying; ++j)
    drawn[j] = draw_in_range(draws, varying[j], from.n_bins[varying[j]], ranges[j]);
  std::size_t n = 0;
  for (std::size_t j = 0; j < n_varying; ++j) {
    drawn[j].codes = codes_of[j];
    const Cut& cut = cuts[n] = drawn[j];
    std::int64_t* sums = scratch.prefix.data() + n++;
    sum_codes(rows, channels, 0, cut.bin, codes_of[j], sums, scratch.stride);
    const std::uint32_t n_bins = from.n_bins[cut.feature];
    if (!cut.missing_seen || cut.bin + 1 == n_bins) continue;
    sum_codes(rows, channels, n_bins, n_bins, codes_of[j], sums + 1, scratch.stride);
    for (std::size_t c = 0; c < channels; ++c)
      sums[c * scratch.stride + 1] += sums[c * scratch.stride];
    cuts[n] = cut;
    cuts[n++].missing_left = true;
  }
  return n;
}

// As find_best, for few candidates.
std::size_t find_best_cut(const GainParams& params, const Pass& pass, double floor,
                          SplitScratch& scratch) {
  if (!is_plain(params) || params.channels > 1) return find_best(params, pass, floor, scratch);
  constexpr std::size_t lanes = 8;
  const GainParams p = params;
  std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  double* ARBOOST_RESTRICT scores = scratch.scores.data();
  const std::int64_t total = pass.totals[0];
  for (std::size_t j = 0; j < lanes; ++j) prefix[pass.n + j] = total;  // nothing on the right
  std::size_t index = pass.n;
  for (std::size_t first = 0; first < pass.n; first += lanes) {
    for (std::size_t j = first; j < first + lanes; ++j) {
      const std::int64_t left = prefix[j], right = total - left;
      const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
      const double score = split_score<true, double>(p, sum_g(left), left_h, sum_g(right), right_h);
      const bool allowed = (left_h >= p.min_h) & (right_h >= p.min_h);
      scores[j] = allowed ? score : forbidden;
    }
    for (std::size_t j = first; j < first + lanes; ++j)
      if (scores[j] > floor) floor = scores[index = j];
  }
  return index;
}

// Of equal scores the first feature's, and with its missing rows on the right.
std::size_t find_cut_few(const GainParams& p, const FewRows& rows, const CutDraws& draws,
                         FeatureList features, SplitScratch& scratch, NodeSplit& best) {
  Cut cuts[2 * cut_group];
  std::size_t n_varying = 0;
  for (std::size_t first = 0; first < features.n; first += cut_group) {
    const std::size_t left = features.n - first;
    const FeatureList group{features.first + first, left < cut_group ? left : cut_group};
    const std::size_t n =
        draw_cuts(rows, draws, group, static_cast<std::size_t>(p.channels), scratch, cuts);
    n_varying += n;
    if (n == 0) continue;
    const std::size_t best_cut =
        find_best_cut(p, {n, rows.totals, nullptr}, best.split.score, scratch);
    if (best_cut == n) continue;
    Cut cut = cuts[best_cut];
    if (cut.bin == unnamed)
      cut = draw_in_range(draws, cut.feature, rows.codes->n_bins[cut.feature],
                          {cut.low, cut.high, false});
    best.feature = static_cast<std::int32_t>(cut.feature);
    best.split = {};
    best.split.score = scratch.scores[best_cut];
    best.split.is_valid = true;
    best.split.bin = cut.bin;
    best.split.missing_seen = cut.missing_seen;
    best.split.missing_left = cut.missing_left;
    best.codes = features.n <= cut_group ? cut.codes : nullptr;  // the next group overwrites them
    for (int c = 0; c < p.channels; ++c)
      best.left_sums[c] = scratch.prefix[c * scratch.stride + best_cut];
  }
  return n_varying;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
