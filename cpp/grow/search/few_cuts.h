// The rows of a small node -> the best of one random threshold for each of some features
// (grow/split/random_cuts.cpp). About 1 ns a row and feature. Single-threaded.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>  // 32 columns at once
#elif defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>  // 16 codes at once
#endif
#include <cstring>  // memset

#include "grow/search/gain.h"
#include "grow/search/random_cut.h"
#include "grow/search/search_data.h"
#include "grow/search/small.h"
#include "grow/search/split.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t code_lanes = 16, sum_lanes = 8;
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
  if (channels == 1 && !rows.is_dense()) {  // rows behind the last one count nothing
    std::int64_t lanes[sum_lanes] = {};
    for (std::size_t i = 0; i < rows.n; i += sum_lanes)
      for (std::size_t j = 0; j < sum_lanes; ++j)
        lanes[j] += values[i + j] & -std::int64_t{is_in(codes[i + j])};
    std::int64_t sum = 0;
    for (const std::int64_t lane : lanes) sum += lane;
    sums[0] = sum;
    return;
  }
  const std::size_t code_stride = rows.is_dense() ? rows.dense.stride : 1;
  for (std::size_t c = 0; c < channels; ++c) sums[c * stride] = 0;
  for (std::size_t i = 0; i < rows.n; ++i) {
    const std::int64_t mask = -std::int64_t{is_in(codes[i * code_stride])};
    for (std::size_t c = 0; c < channels; ++c)
      sums[c * stride] += values[i * rows.value_stride + c] & mask;
  }
}

// Threshold of a feature.
struct Cut {
  std::uint32_t feature, bin;
  bool missing_seen, missing_left;
  const std::uint8_t* codes;  // of the rows
};

// The random threshold of a feature, from the range of its rows' codes. If all values are equal,
// they go left and missing values right.
inline Cut draw_in_range(const CutDraws& draws, std::uint32_t feature, std::uint32_t n_bins,
                         const CodeRange& range, const std::uint8_t* codes) {
  if (range.low == range.high) return {feature, n_bins - 1, true, false, codes};
  const std::uint32_t bin =
      draw_cut(cut_key(draws.key, feature), draws.values[feature], range.low, range.high);
  return {feature, bin, range.missing, false, codes};
}

// Lowest and highest codes of each column of dense rows: of values, and missing ones included.
struct ColumnRanges {
  static constexpr std::size_t most = 64;

  alignas(32) std::uint8_t low[most];
  alignas(32) std::uint8_t high[most];
  alignas(32) std::uint8_t top[most];

  CodeRange of(std::size_t column, std::uint32_t n_bins) const {
    return {low[column], high[column], top[column] == n_bins};
  }
};

#if defined(__AVX2__)
// Of 32 columns from `first` on.
template <bool with_missing>
inline void find_ranges_at(const FewRows& rows, std::size_t first, ColumnRanges& ranges) {
  const auto load = [](const std::uint8_t* codes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  };
  const auto store = [first](std::uint8_t* to, __m256i codes) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + first), codes);
  };
  const __m256i missing = load(rows.dense.missing + first);
  __m256i low = _mm256_set1_epi8(-1), high = _mm256_setzero_si256(), top = high;
  const std::uint8_t* row = rows.dense.first + first;
  for (std::size_t i = 0; i < rows.n; ++i, row += rows.dense.stride) {
    const __m256i code = load(row);
    low = _mm256_min_epu8(low, code);
    top = _mm256_max_epu8(top, code);
    if (with_missing)
      high = _mm256_max_epu8(high, _mm256_andnot_si256(_mm256_cmpeq_epi8(code, missing), code));
  }
  store(ranges.low, low);
  store(ranges.top, top);
  store(ranges.high, with_missing ? high : top);
}

inline void find_ranges(const FewRows& rows, ColumnRanges& ranges) {
  for (std::size_t first = 0; first < rows.dense.lanes; first += 32)
    rows.dense.any_missing ? find_ranges_at<true>(rows, first, ranges)
                           : find_ranges_at<false>(rows, first, ranges);
}

// sums[j] = the sum of the rows, of one channel, whose codes are up to the bin of cut j.
template <std::size_t parts>  // of 16 codes in a row
inline void sum_dense_parts(const FewRows& rows, const Cut* cuts, std::size_t n,
                            std::int64_t* sums) {
  alignas(16) std::uint8_t picked[parts][16];
  alignas(16) std::uint8_t bins[16] = {};
  std::memset(picked, 128, sizeof(picked));
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t column = rows.dense.columns[cuts[j].feature];
    picked[column / 16][j] = column % 16;
    bins[j] = static_cast<std::uint8_t>(cuts[j].bin);
  }
  const auto load = [](const std::uint8_t* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  };
  const __m128i last = load(bins);
  __m256i low = _mm256_setzero_si256(), high = low;  // four cuts each
  const std::uint8_t* row = rows.dense.first;
  const std::int64_t* value = rows.values;
  for (std::size_t i = 0; i < rows.n; ++i) {
    __m128i codes = _mm_shuffle_epi8(load(row), load(picked[0]));
    for (std::size_t p = 1; p < parts; ++p)
      codes = _mm_or_si128(codes, _mm_shuffle_epi8(load(row + 16 * p), load(picked[p])));
    const __m128i is_left = _mm_cmpeq_epi8(_mm_max_epu8(codes, last), last);
    const __m256i values = _mm256_set1_epi64x(*value);
    low = _mm256_add_epi64(low, _mm256_and_si256(values, _mm256_cvtepi8_epi64(is_left)));
    high = _mm256_add_epi64(
        high, _mm256_and_si256(values, _mm256_cvtepi8_epi64(_mm_srli_si128(is_left, 4))));
    row += rows.dense.stride;
    value += rows.value_stride;
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 4), high);
}

inline void sum_dense(const FewRows& rows, const Cut* cuts, std::size_t n, std::int64_t* sums) {
  static_assert(cut_group == 8);
  rows.dense.lanes == 32 ? sum_dense_parts<2>(rows, cuts, n, sums)
                         : sum_dense_parts<4>(rows, cuts, n, sums);
}
#else
inline void find_ranges(const FewRows& rows, ColumnRanges& ranges) {
  const std::size_t n = rows.dense.lanes;
  std::memset(ranges.low, 255, n);
  std::memset(ranges.high, 0, n);
  std::memset(ranges.top, 0, n);
  const std::uint8_t* ARBOOST_RESTRICT missing = rows.dense.missing;
  for (std::size_t i = 0; i < rows.n; ++i) {
    const std::uint8_t* ARBOOST_RESTRICT row = rows.dense.first + i * rows.dense.stride;
    for (std::size_t j = 0; j < n; ++j) {
      const std::uint8_t code = row[j], value = code == missing[j] ? std::uint8_t{0} : code;
      ranges.low[j] = code < ranges.low[j] ? code : ranges.low[j];
      ranges.high[j] = value > ranges.high[j] ? value : ranges.high[j];
      ranges.top[j] = code > ranges.top[j] ? code : ranges.top[j];
    }
  }
}

inline void sum_dense(const FewRows& rows, const Cut* cuts, std::size_t n, std::int64_t* sums) {
  for (std::size_t j = 0; j < n; ++j)
    sum_codes(rows, 1, 0, cuts[j].bin, cuts[j].codes, sums + j, 1);
}
#endif

// The ranges of features over the rows, and their codes: of dense rows from `columns`, else
// gathered. Returns how many features vary; they come first.
struct Varying {
  std::uint32_t feature;
  CodeRange range;
  const std::uint8_t* codes;
};
std::size_t list_varying(const FewRows& rows, FeatureList features, const ColumnRanges& columns,
                         SplitScratch& scratch, Varying* varying) {
  const Codes& from = *rows.codes;
  if (!rows.is_dense()) gather_codes(rows, features, scratch.codes.data());
  std::size_t n_varying = 0;
  for (std::size_t k = 0; k < features.n; ++k) {
    const std::uint32_t f = features.first[k], n_bins = from.n_bins[f];
    const std::uint8_t* codes =
        rows.is_dense() ? rows.dense.column(f) : scratch.codes.data() + k * code_stride(rows.n);
    const CodeRange range = rows.is_dense()            ? columns.of(rows.dense.columns[f], n_bins)
                            : from.has_missing[f] != 0 ? range_of<true>(codes, rows.n, n_bins)
                                                       : range_of<false>(codes, rows.n, n_bins);
    varying[n_varying] = {f, range, codes};
    n_varying += (range.low == range.high ? range.missing : range.low < range.high) ? 1 : 0;
  }
  return n_varying;
}

// The cuts of up to cut_group features, with the sums of their left sides in scratch.prefix; twice
// that of a feature whose missing rows may go both ways. Returns how many there are.
std::size_t draw_cuts(const FewRows& rows, const CutDraws& draws, FeatureList features,
                      const ColumnRanges& columns, std::size_t channels, SplitScratch& scratch,
                      Cut* cuts) {
  const Codes& from = *rows.codes;
  Varying varying[cut_group + 1];
  const std::size_t n_varying = list_varying(rows, features, columns, scratch, varying);
  Cut drawn[cut_group];
  for (std::size_t j = 0; j < n_varying; ++j)
    drawn[j] = draw_in_range(draws, varying[j].feature, from.n_bins[varying[j].feature],
                             varying[j].range, varying[j].codes);
  std::int64_t left[cut_group];
  const bool together = rows.is_dense() && channels == 1;
  if (together) sum_dense(rows, drawn, n_varying, left);
  std::size_t n = 0;
  for (std::size_t j = 0; j < n_varying; ++j) {
    const Cut& cut = cuts[n] = drawn[j];
    std::int64_t* sums = scratch.prefix.data() + n++;
    if (together)
      sums[0] = left[j];
    else
      sum_codes(rows, channels, 0, cut.bin, cut.codes, sums, scratch.stride);
    const std::uint32_t n_bins = from.n_bins[cut.feature];
    if (!cut.missing_seen || cut.bin + 1 == n_bins) continue;
    sum_codes(rows, channels, n_bins, n_bins, cut.codes, sums + 1, scratch.stride);
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
  ColumnRanges columns;
  if (rows.is_dense()) find_ranges(rows, columns);
  std::size_t n_varying = 0;
  for (std::size_t first = 0; first < features.n; first += cut_group) {
    const std::size_t left = features.n - first;
    const FeatureList group{features.first + first, left < cut_group ? left : cut_group};
    const std::size_t n =
        draw_cuts(rows, draws, group, columns, static_cast<std::size_t>(p.channels), scratch, cuts);
    n_varying += n;
    if (n == 0) continue;
    const std::size_t best_cut =
        find_best_cut(p, {n, rows.totals, nullptr}, best.split.score, scratch);
    if (best_cut == n) continue;
    const Cut& cut = cuts[best_cut];
    take_candidate(p, cut.feature, best_cut, scratch, best);
    best.split.bin = cut.bin;
    best.split.missing_seen = cut.missing_seen;
    best.split.missing_left = cut.missing_left;
  }
  return n_varying;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
