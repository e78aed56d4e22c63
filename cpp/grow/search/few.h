// The rows of a small node (up to 128) -> its best split over some features, without a histogram or
// a sort. Single-threaded.
//
// For each row i, vectorised byte comparisons count the rows with codes up to that of row i. The
// count is the row's index among the prefix sums over the codes:
//
//   codes    7  2  9  2        row values   a  b  c  d
//   counts   3  2  4  2        places       -  b+d  a  c     running sums   0  b+d  a+b+d  (all)
//
// Entries without a code repeat the sums before them, so the first of equal entries belongs to a
// code. The sums of all features are contiguous and scored together. About 2 ns a row and feature.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>  // 32 or 64 codes at once
#endif
#include <cstring>  // memset

#include "grow/search/gain.h"
#include "grow/search/search_data.h"
#include "grow/search/small.h"
#include "grow/search/split.h"

namespace arboost::ARBOOST_ISA {
namespace {

#if defined(__AVX512BW__)
constexpr std::size_t few_rows = 128;  // above, a pass over the occurring codes is cheaper
#else
constexpr std::size_t few_rows = 64;
#endif

constexpr std::size_t rows_at_once = 8, features_at_once = 8;

// Loops take several rows at once: behind the last one, codes are 255 and values 0. Further padding
// to whole registers is arbitrary.
struct FewCodes {
  alignas(64) std::uint8_t codes[features_at_once][few_rows + 64];
  alignas(64) std::uint8_t counts[few_rows + rows_at_once];
  std::int64_t values[few_rows + rows_at_once];  // of one channel
  std::size_t offsets[few_rows];                 // of the rows in the table
};

inline std::size_t whole_rows(std::size_t n) {
  return (n + rows_at_once - 1) / rows_at_once * rows_at_once;
}

// counts[i] = how many of the n codes are at most codes[i]. Those behind them count for codes of
// 255 alone, which n codes are at most.
#if defined(__AVX512BW__)
template <std::size_t registers>
inline void count_in_registers(const std::uint8_t* all, std::size_t n, std::uint8_t* to) {
  __m512i codes[registers], counts[registers];
  for (std::size_t r = 0; r < registers; ++r) {
    codes[r] = _mm512_load_si512(all + 64 * r);
    counts[r] = _mm512_setzero_si512();
  }
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::size_t first = 0; first < n; first += 4)
    for (std::size_t j = first; j < first + 4; ++j) {
      const __m512i code = _mm512_set1_epi8(static_cast<char>(all[j]));
      for (std::size_t r = 0; r < registers; ++r)
        counts[r] = _mm512_mask_add_epi8(counts[r], _mm512_cmple_epu8_mask(code, codes[r]),
                                         counts[r], ones);
    }
  const __m512i most = _mm512_set1_epi8(static_cast<char>(n));
  for (std::size_t r = 0; r < registers; ++r)
    _mm512_store_si512(to + 64 * r, _mm512_min_epu8(counts[r], most));
}

inline void count_codes(const std::uint8_t* codes, std::size_t n, std::uint8_t* counts) {
  n <= 64 ? count_in_registers<1>(codes, n, counts) : count_in_registers<2>(codes, n, counts);
}
#elif defined(__AVX2__)
template <std::size_t registers>
inline void count_in_registers(const std::uint8_t* all, std::size_t n, std::uint8_t* to) {
  __m256i codes[registers], counts[registers];
  for (std::size_t r = 0; r < registers; ++r) {
    codes[r] = _mm256_load_si256(reinterpret_cast<const __m256i*>(all) + r);
    counts[r] = _mm256_setzero_si256();
  }
  for (std::size_t first = 0; first < n; first += 4)
    for (std::size_t j = first; j < first + 4; ++j) {
      const __m256i code = _mm256_set1_epi8(static_cast<char>(all[j]));
      for (std::size_t r = 0; r < registers; ++r)
        counts[r] = _mm256_sub_epi8(counts[r],
                                    _mm256_cmpeq_epi8(_mm256_max_epu8(codes[r], code), codes[r]));
    }
  const __m256i most = _mm256_set1_epi8(static_cast<char>(n));
  for (std::size_t r = 0; r < registers; ++r)
    _mm256_store_si256(reinterpret_cast<__m256i*>(to) + r, _mm256_min_epu8(counts[r], most));
}

inline void count_codes(const std::uint8_t* codes, std::size_t n, std::uint8_t* counts) {
  n <= 32 ? count_in_registers<1>(codes, n, counts) : count_in_registers<2>(codes, n, counts);
}
#else
inline void count_codes(const std::uint8_t* codes, std::size_t n, std::uint8_t* to) {
  constexpr std::size_t lanes = 16;
  for (std::size_t first = 0; first < n; first += lanes) {
    std::uint8_t counts[lanes] = {};
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < lanes; ++i) counts[i] += codes[j] <= codes[first + i];
    std::memcpy(to + first, counts, lanes);
  }
}
#endif

#if defined(__AVX2__)
// Codes of up to 8 features of dense rows, feature by feature: 8 x 8 bytes are transposed at once.
template <std::size_t parts>  // of 16 codes in a row
inline void read_parts(const DenseRows& rows, std::size_t n, FeatureList features, FewCodes& few) {
  alignas(16) std::uint8_t picked[parts][16];
  std::memset(picked, 128, sizeof(picked));
  for (std::size_t k = 0; k < features.n; ++k) {
    const std::uint8_t column = rows.columns[features.first[k]];
    picked[column / 16][k] = column % 16;
  }
  const auto load = [](const std::uint8_t* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  };
  for (std::size_t i = 0; i < n; i += rows_at_once) {
    __m128i row[rows_at_once];
    for (std::size_t r = 0; r < rows_at_once; ++r) {
      const std::uint8_t* codes = rows.first + (i + r) * rows.stride;
      row[r] = _mm_shuffle_epi8(load(codes), load(picked[0]));
      for (std::size_t p = 1; p < parts; ++p)
        row[r] = _mm_or_si128(row[r], _mm_shuffle_epi8(load(codes + 16 * p), load(picked[p])));
    }
    __m128i pairs[4], fours[4];
    for (std::size_t r = 0; r < 4; ++r) pairs[r] = _mm_unpacklo_epi8(row[2 * r], row[2 * r + 1]);
    for (std::size_t r = 0; r < 2; ++r) {
      fours[r] = _mm_unpacklo_epi16(pairs[2 * r], pairs[2 * r + 1]);
      fours[2 + r] = _mm_unpackhi_epi16(pairs[2 * r], pairs[2 * r + 1]);
    }
    const auto store = [&](std::size_t k, __m128i codes) {  // of features k and k + 1
      _mm_storel_epi64(reinterpret_cast<__m128i*>(few.codes[k] + i), codes);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(few.codes[k + 1] + i),
                       _mm_unpackhi_epi64(codes, codes));
    };
    store(0, _mm_unpacklo_epi32(fours[0], fours[1]));
    store(2, _mm_unpackhi_epi32(fours[0], fours[1]));
    store(4, _mm_unpacklo_epi32(fours[2], fours[3]));
    store(6, _mm_unpackhi_epi32(fours[2], fours[3]));
  }
}

inline void read_dense(const FewRows& rows, FeatureList features, FewCodes& few) {
  rows.dense.lanes == 32 ? read_parts<2>(rows.dense, rows.n, features, few)
                         : read_parts<4>(rows.dense, rows.n, features, few);
}
#else
inline void read_dense(const FewRows& rows, FeatureList features, FewCodes& few) {
  for (std::size_t i = 0; i < rows.n; ++i)
    for (std::size_t k = 0; k < features.n; ++k)
      few.codes[k][i] = rows.dense.column(features.first[k])[i * rows.dense.stride];
}
#endif

// Codes of up to features_at_once features, whose columns may be shared.
void read_codes(const FewRows& rows, FeatureList features, FewCodes& few) {
  if (rows.is_dense()) read_dense(rows, features, few);
  for (std::size_t k = 0; k < features.n; ++k) {
    const std::uint32_t f = features.first[k];
    std::uint8_t* codes = few.codes[k];
    const std::uint8_t* by_row = rows.codes->by_row.data() + rows.codes->where[f].store;
    for (std::size_t i = 0; !rows.is_dense() && i < rows.n; ++i) codes[i] = by_row[few.offsets[i]];
    if (const std::uint8_t* table = rows.table(f))
      for (std::size_t i = 0; i < rows.n; ++i) codes[i] = table[codes[i]];
    std::memset(codes + rows.n, 255, rows_at_once);
  }
}

// The splits of a feature, among those of others in scratch.prefix.
struct SplitGroup {
  std::uint32_t feature, begin;
  bool missing_seen, missing_left;
};

// The splits of a node that wait to be scored, and the best of those that were.
struct FewSearch {
  const GainParams& p;
  const FewRows& rows;
  SplitScratch& scratch;
  NodeSplit& best;
  SplitGroup* groups;  // with room for one more
  std::size_t n = 0, n_groups = 0;
  std::size_t best_count = 0;  // rows up to the best split's code
  bool by_count = false;       // the best split is known by that instead of its code

  std::size_t stride() const { return scratch.stride; }
  std::size_t channels() const { return static_cast<std::size_t>(p.channels); }
};

// The running sums over the codes of all rows but the last, behind those of other features.
template <std::size_t fixed_channels>  // 0: known only at run time
inline void add_running_sums(FewSearch& search, const FewCodes& few) {
  const std::size_t channels = fixed_channels == 0 ? search.channels() : fixed_channels;
  const std::size_t n = search.rows.n, stride = search.stride();
  const std::size_t value_stride = search.rows.value_stride;
  std::int64_t* ARBOOST_RESTRICT sums = search.scratch.prefix.data() + search.n;
  // There is room behind the last sum.
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < n; i += rows_at_once)
      for (std::size_t j = 0; j < rows_at_once; ++j) sums[c * stride + i + j] = 0;
  if (fixed_channels == 1) {
    for (std::size_t i = 0; i < n; i += rows_at_once)
      for (std::size_t j = i; j < i + rows_at_once; ++j) sums[few.counts[j] - 1] += few.values[j];
  } else {
    const std::int64_t* ARBOOST_RESTRICT values = search.rows.values;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < channels; ++c)
        sums[c * stride + few.counts[i] - 1] += values[i * value_stride + c];
  }
  for (std::size_t c = 0; c < channels; ++c) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < n; i += rows_at_once)
      for (std::size_t j = i; j < i + rows_at_once; ++j)
        sums[c * stride + j] = sum += sums[c * stride + j];
  }
}

// The same splits with missing rows on the left.
void add_missing_left(FewSearch& search, std::size_t n_present) {
  const std::size_t n = search.rows.n;
  for (std::size_t c = 0; c < search.channels(); ++c) {
    std::int64_t* sums = search.scratch.prefix.data() + c * search.stride() + search.n;
    const std::int64_t missing = sums[n - 1] - sums[n_present - 1];
    for (std::size_t i = 0; i + 1 < n_present; ++i) sums[n - 1 + i] = sums[i] + missing;
  }
}

void score_few(FewSearch& search) {
  if (search.n == 0) return;
  const std::size_t n = search.n;
  const Pass pass{n, search.rows.totals, nullptr};
  search.groups[search.n_groups].begin = static_cast<std::uint32_t>(n);
  search.n = 0;
  const std::size_t index = find_best(search.p, pass, search.best.split.score, search.scratch);
  if (index == n) return;
  std::size_t group = 0;
  while (search.groups[group + 1].begin <= index) ++group;
  const SplitGroup& split_group = search.groups[group];
  take_candidate(search.p, split_group.feature, index, search.scratch, search.best);
  search.best.split.missing_seen = split_group.missing_seen;
  search.best.split.missing_left = split_group.missing_left;
  search.best_count = index - split_group.begin + 1;
  search.by_count = true;
}

void add_feature(FewSearch& search, std::uint32_t feature, const std::uint8_t* own_codes,
                 FewCodes& few) {
  const std::size_t n = search.rows.n;
  if (search.n == 0) search.n_groups = 0;
  const Codes& codes = *search.rows.codes;
  std::size_t n_present = n;
  if (codes.has_missing[feature] != 0) {
    const std::uint32_t missing = codes.n_bins[feature];
    for (std::size_t i = 0; i < n; ++i) n_present -= own_codes[i] == missing ? 1 : 0;
    if (n_present == 0) return;
  }
  count_codes(own_codes, n, few.counts);
  std::memset(few.counts + n, 1, rows_at_once);  // of zero values
  switch (search.p.channels) {
    case 1:
      add_running_sums<1>(search, few);
      break;
    case 2:
      add_running_sums<2>(search, few);
      break;
    case 3:
      add_running_sums<3>(search, few);
      break;
    default:
      add_running_sums<0>(search, few);
  }
  const bool has_missing = n_present < n;
  if (has_missing) add_missing_left(search, n_present);
  search.groups[search.n_groups++] = {feature, static_cast<std::uint32_t>(search.n), has_missing,
                                      false};
  search.n += n - 1;
  if (has_missing && n_present > 1) {
    search.groups[search.n_groups++] = {feature, static_cast<std::uint32_t>(search.n), true, true};
    search.n += n_present - 1;
  }
  if (search.n + 2 * n > few_candidates) score_few(search);
}

// The code of the best split, and the next one among the rows.
void name_codes(const FewSearch& search, FewCodes& few) {
  FeatureSplit& split = search.best.split;
  const auto feature = static_cast<std::uint32_t>(search.best.feature);
  read_codes(search.rows, {&feature, 1}, few);
  count_codes(few.codes[0], search.rows.n, few.counts);
  const auto last = static_cast<std::uint8_t>(search.best_count);
  std::uint8_t bin = 0, next = 255;
  for (std::size_t i = 0; i < search.rows.n; ++i) {
    const std::uint8_t code = few.codes[0][i];
    const std::uint8_t right = few.counts[i] <= last ? 0 : 255;  // all bits
    const std::uint8_t left_code = code & ~right, right_code = code | ~right;
    bin = left_code > bin ? left_code : bin;
    next = right_code < next ? right_code : next;
  }
  split.bin = bin;
  split.next = next;
}

// Takes over the split of a feature that was searched by itself.
void take_split(FewSearch& search, std::uint32_t feature, const FeatureSplit& split) {
  if (!split.is_valid) return;
  search.best.split = split;
  search.best.feature = static_cast<std::int32_t>(feature);
  for (std::size_t c = 0; c < search.channels(); ++c)
    search.best.left_sums[c] = search.scratch.left[c];
  search.by_count = false;
}

// Searches the first features, as many as are read together; false where there are too few, or
// their codes are not of this kind.
bool search_together(FewSearch& search, FeatureList features) {
  const FewRows& rows = search.rows;
  const Codes& codes = *rows.codes;
  if (features.n < codes_together || search.channels() > 1 || codes.width > 1) return false;
  for (std::size_t k = 0; k < codes_together; ++k) {
    const std::uint32_t f = features.first[k];
    if (codes.has_levels(f) || rows.table(f) != nullptr) return false;
  }
  SplitScratch& scratch = search.scratch;
  add_together(rows, features.first, scratch);
  for (std::size_t k = 0; k < codes_together; ++k) {
    const std::uint32_t f = features.first[k];
    const std::size_t n_codes =
        list_codes<1>(scratch.touched.data() + 256 * k, scratch.slots.data() + 256 * k, 1, scratch);
    take_split(search, f,
               find_split_listed(search.p, n_codes, codes.n_bins[f], rows.totals,
                                 search.best.split.score, scratch));
  }
  return true;
}

void find_split_few(const GainParams& p, const FewRows& rows, FeatureList features,
                    SplitScratch& scratch, NodeSplit& best) {
  FewCodes few;
  SplitGroup groups[few_candidates + 1];
  FewSearch search{p, rows, scratch, best, groups};
  const bool by_byte = rows.codes->width == 1 && rows.n <= few_rows;
  for (std::size_t i = 0; by_byte && !rows.is_dense() && i < rows.n; ++i)
    few.offsets[i] = row_of(rows.elements[i]) * rows.codes->row_stride;
  for (std::size_t i = 0; by_byte && i < whole_rows(rows.n); ++i)
    few.values[i] = i < rows.n ? rows.values[i * rows.value_stride] : 0;
  std::size_t n_read = 0;  // features whose codes have been read
  for (std::size_t j = 0; j < features.n; ++j) {
    const std::uint32_t f = features.first[j];
    if (by_byte && !rows.codes->has_levels(f)) {
      const std::size_t k = j % features_at_once, group = j - k;
      if (n_read <= j) {
        n_read = features.n - group < features_at_once ? features.n : group + features_at_once;
        read_codes(rows, {features.first + group, n_read - group}, few);
      }
      add_feature(search, f, few.codes[k], few);
      continue;
    }
    score_few(search);
    if (!by_byte && search_together(search, {features.first + j, features.n - j})) {
      j += codes_together - 1;
      continue;
    }
    take_split(search, f, find_split_small(p, rows, f, best.split.score, scratch));
  }
  score_few(search);
  if (search.by_count) name_codes(search, few);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
