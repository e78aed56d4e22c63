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

// Padded to whole registers; the padding is arbitrary.
struct FewCodes {
  alignas(64) std::uint8_t codes[few_rows];
  alignas(64) std::uint8_t counts[few_rows];
  std::size_t offsets[few_rows];  // of the rows in the table
};

// counts[i] = how many of the codes are at most codes[i].
#if defined(__AVX512BW__)
template <std::size_t registers>
inline void count_in_registers(std::size_t n, FewCodes& few) {
  __m512i codes[registers], counts[registers];
  for (std::size_t r = 0; r < registers; ++r) {
    codes[r] = _mm512_load_si512(few.codes + 64 * r);
    counts[r] = _mm512_setzero_si512();
  }
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::size_t j = 0; j < n; ++j) {
    const __m512i code = _mm512_set1_epi8(static_cast<char>(few.codes[j]));
    for (std::size_t r = 0; r < registers; ++r)
      counts[r] =
          _mm512_mask_add_epi8(counts[r], _mm512_cmple_epu8_mask(code, codes[r]), counts[r], ones);
  }
  for (std::size_t r = 0; r < registers; ++r) _mm512_store_si512(few.counts + 64 * r, counts[r]);
}

inline void count_codes(std::size_t n, FewCodes& few) {
  n <= 64 ? count_in_registers<1>(n, few) : count_in_registers<2>(n, few);
}
#elif defined(__AVX2__)
template <std::size_t registers>
inline void count_in_registers(std::size_t n, FewCodes& few) {
  __m256i codes[registers], counts[registers];
  for (std::size_t r = 0; r < registers; ++r) {
    codes[r] = _mm256_load_si256(reinterpret_cast<const __m256i*>(few.codes) + r);
    counts[r] = _mm256_setzero_si256();
  }
  for (std::size_t j = 0; j < n; ++j) {
    const __m256i code = _mm256_set1_epi8(static_cast<char>(few.codes[j]));
    for (std::size_t r = 0; r < registers; ++r)
      counts[r] =
          _mm256_sub_epi8(counts[r], _mm256_cmpeq_epi8(_mm256_max_epu8(codes[r], code), codes[r]));
  }
  for (std::size_t r = 0; r < registers; ++r)
    _mm256_store_si256(reinterpret_cast<__m256i*>(few.counts) + r, counts[r]);
}

inline void count_codes(std::size_t n, FewCodes& few) {
  n <= 32 ? count_in_registers<1>(n, few) : count_in_registers<2>(n, few);
}
#else
inline void count_codes(std::size_t n, FewCodes& few) {
  constexpr std::size_t lanes = 16;
  for (std::size_t first = 0; first < n; first += lanes) {
    std::uint8_t counts[lanes] = {};
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < lanes; ++i) counts[i] += few.codes[j] <= few.codes[first + i];
    std::memcpy(few.counts + first, counts, lanes);
  }
}
#endif

inline void read_codes(const FewRows& rows, std::size_t feature, FewCodes& few) {
  if (rows.is_dense()) {
    const std::uint8_t* codes = rows.dense.column(feature);
    for (std::size_t i = 0; i < rows.n; ++i) few.codes[i] = codes[i * rows.dense.stride];
    return;
  }
  const std::uint8_t* by_row = rows.codes->by_row.data() + rows.codes->where[feature].store;
  for (std::size_t i = 0; i < rows.n; ++i) few.codes[i] = by_row[few.offsets[i]];
  if (const std::uint8_t* table = rows.table(feature))
    for (std::size_t i = 0; i < rows.n; ++i) few.codes[i] = table[few.codes[i]];
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
  const std::int64_t* ARBOOST_RESTRICT values = search.rows.values;
  std::int64_t* ARBOOST_RESTRICT sums = search.scratch.prefix.data() + search.n;
  // In whole registers: there is room behind the last one.
  constexpr std::size_t lanes = 8;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < n; i += lanes)
      for (std::size_t j = 0; j < lanes; ++j) sums[c * stride + i + j] = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < channels; ++c)
      sums[c * stride + few.counts[i] - 1] += values[i * value_stride + c];
  for (std::size_t c = 0; c < channels; ++c) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sums[c * stride + i] = sum += sums[c * stride + i];
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
  NodeSplit& best = search.best;
  best.feature = static_cast<std::int32_t>(split_group.feature);
  best.split = {};
  best.split.score = search.scratch.scores[index];
  best.split.is_valid = true;
  best.split.missing_seen = split_group.missing_seen;
  best.split.missing_left = split_group.missing_left;
  for (std::size_t c = 0; c < search.channels(); ++c)
    best.left_sums[c] = search.scratch.prefix[c * search.stride() + index];
  search.best_count = index - split_group.begin + 1;
  search.by_count = true;
}

void add_feature(FewSearch& search, std::uint32_t feature, FewCodes& few) {
  const std::size_t n = search.rows.n;
  if (search.n == 0) search.n_groups = 0;
  read_codes(search.rows, feature, few);
  const Codes& codes = *search.rows.codes;
  std::size_t n_present = n;
  if (codes.has_missing[feature] != 0) {
    const std::uint32_t missing = codes.n_bins[feature];
    for (std::size_t i = 0; i < n; ++i) n_present -= few.codes[i] == missing ? 1 : 0;
    if (n_present == 0) return;
  }
  count_codes(n, few);
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
  const auto feature = static_cast<std::size_t>(search.best.feature);
  read_codes(search.rows, feature, few);
  count_codes(search.rows.n, few);
  // Padding: splits with zero sums on one side.
  constexpr std::size_t lanes = 16;
  for (std::size_t i = search.rows.n; i % lanes != 0; ++i) few.codes[i] = few.counts[i] = 0;
  const auto last = static_cast<std::uint8_t>(search.best_count);
  std::uint8_t bin[lanes] = {}, next[lanes];
  for (std::uint8_t& code : next) code = 255;
  for (std::size_t first = 0; first < search.rows.n; first += lanes)
    for (std::size_t j = 0; j < lanes; ++j) {
      const std::uint8_t code = few.codes[first + j];
      const bool is_left = few.counts[first + j] <= last;
      const std::uint8_t left = is_left ? code : std::uint8_t{0};
      const std::uint8_t right = is_left ? std::uint8_t{255} : code;
      bin[j] = left > bin[j] ? left : bin[j];
      next[j] = right < next[j] ? right : next[j];
    }
  for (std::size_t j = 1; j < lanes; ++j) {
    bin[0] = bin[j] > bin[0] ? bin[j] : bin[0];
    next[0] = next[j] < next[0] ? next[j] : next[0];
  }
  split.bin = bin[0];
  split.next = next[0];
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
  for (std::size_t j = 0; j < features.n; ++j) {
    const std::uint32_t f = features.first[j];
    if (by_byte && !rows.codes->has_levels(f)) {
      add_feature(search, f, few);
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
