// The rows of a small node -> the best split of one feature, without a histogram: a pass over all
// bins would cost more than the rows. About 2 ns a row. Single-threaded.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <bit>      // countr_zero
#include <cstring>  // memcpy

#if defined(__AVX2__)
#include <immintrin.h>  // bytes to bits in one or two instructions
#endif

#include "grow/search/category.h"
#include "grow/search/gain.h"
#include "grow/search/search_data.h"
#include "grow/search/split.h"

namespace arboost::ARBOOST_ISA {
namespace {

// 64 bytes of 0 or 1 -> 64 bits. The product moves the lowest bits of eight bytes side by side into
// its highest byte: byte i, times 2^(56 - 7i), lands on bit 56 + i.
inline std::uint64_t bits_of_bytes(const std::uint8_t* bytes) {
#if defined(__AVX512BW__)
  const __m512i all = _mm512_loadu_si512(bytes);
  return _mm512_test_epi8_mask(all, all);
#elif defined(__AVX2__)
  const auto half = [&](int at) {
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + at));
    return std::uint64_t{static_cast<std::uint32_t>(
        _mm256_movemask_epi8(_mm256_slli_epi16(all, 7)))};  // the lowest bit of a byte to its top
  };
  return half(0) | half(32) << 32;
#else
  std::uint64_t bits = 0;
  for (int group = 0; group < 8; ++group) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes + 8 * group, 8);
    bits |= (eight * 0x0102040810204080u >> 56) << (8 * group);
  }
  return bits;
#endif
}

// Takes over a candidate as the best split so far; its codes and missing rows are the caller's.
inline void take_candidate(const GainParams& p, std::uint32_t feature, std::size_t index,
                           const SplitScratch& scratch, NodeSplit& best) {
  best.feature = static_cast<std::int32_t>(feature);
  best.split = {};
  best.split.score = scratch.scores[index];
  best.split.is_valid = true;
  for (int c = 0; c < p.channels; ++c)
    best.left_sums[c] = scratch.prefix[c * scratch.stride + index];
}

// True if the codes of n rows are read from the row-major codes: a cache line has all features of a
// row. Columns are denser where several of the rows share a line of 64 rows.
inline bool reads_by_row(const Codes& codes, std::size_t n) {
  constexpr std::size_t near_rows = 1024, rows_apart = 16;
  return codes.row_stride <= 64 && (n <= near_rows || n <= codes.n_rows / rows_apart);
}

// The codes of a feature, by row of the table.
template <class Code>
struct CodesOf {
  CodesOf(const Codes& codes, std::size_t store, std::size_t n) {
    const bool by_row = reads_by_row(codes, n);
    first = by_row ? codes.row<Code>(0) + store : codes.column<Code>(store);
    stride = by_row ? codes.row_stride / sizeof(Code) : 1;
  }
  std::uint32_t operator()(Element e) const { return first[row_of(e) * stride]; }
  std::uint32_t operator()(const FewRows& rows, std::size_t i) const {
    return (*this)(rows.elements[i]);
  }

  const Code* first;
  std::size_t stride;
};

// The same where features share the column.
struct SharedCodesOf {
  std::uint32_t operator()(const FewRows& rows, std::size_t i) const {
    return table[stored(rows, i)];
  }

  CodesOf<std::uint8_t> stored;
  const std::uint8_t* table;
};

// The same of dense rows.
struct DenseCodesOf {
  std::uint32_t operator()(const FewRows& rows, std::size_t i) const {
    return first[i * rows.dense.stride];
  }

  const std::uint8_t* first;
};

// Writes the occurring codes, ascending, to scratch.bins, their prefix sums to scratch.prefix, and
// the last code's own sums to scratch.missing. Returns the number of occurring codes. Marks and
// slots, of one-byte codes, are emptied for the next call.
template <std::size_t fixed_channels>  // 0: known only at run time
std::size_t list_codes(std::uint8_t* ARBOOST_RESTRICT touched, std::int64_t* ARBOOST_RESTRICT slots,
                       std::size_t any_channels, SplitScratch& scratch) {
  const std::size_t channels = fixed_channels == 0 ? any_channels : fixed_channels;
  std::uint32_t* ARBOOST_RESTRICT bins = scratch.bins.data();
  std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  const std::size_t stride = scratch.stride;
  // Known channels have their sums in registers.
  std::int64_t known[2 * (fixed_channels == 0 ? 1 : fixed_channels)] = {};
  std::int64_t* ARBOOST_RESTRICT sum = fixed_channels == 0 ? scratch.sides.data() : known;
  std::int64_t* ARBOOST_RESTRICT code_sums =
      fixed_channels == 0 ? scratch.missing.data() : known + fixed_channels;
  for (std::size_t c = 0; c < channels; ++c) sum[c] = code_sums[c] = 0;
  std::size_t n_codes = 0;
  for (std::uint32_t first = 0; first < 256; first += 64) {
    for (std::uint64_t marks = bits_of_bytes(touched + first); marks != 0; marks &= marks - 1) {
      const std::uint32_t code = first + static_cast<std::uint32_t>(std::countr_zero(marks));
      bins[n_codes] = code;
      for (std::size_t c = 0; c < channels; ++c) {
        sum[c] += code_sums[c] = slots[code * channels + c];
        slots[code * channels + c] = 0;
        prefix[c * stride + n_codes] = sum[c];
      }
      ++n_codes;
    }
  }
  if (fixed_channels > 0)
    for (std::size_t c = 0; c < channels; ++c) scratch.missing[c] = code_sums[c];
  std::memset(touched, 0, 256);
  return n_codes;
}

// One-byte codes of one feature: a byte map marks the occurring codes, so no sort is needed.
template <std::size_t fixed_channels, class CodeOf>  // 0: known only at run time
std::size_t collect(const CodeOf& code_of, const FewRows& rows, std::size_t any_channels,
                    SplitScratch& scratch) {
  const std::size_t channels = fixed_channels == 0 ? any_channels : fixed_channels;
  const std::int64_t* row_values = rows.values;
  std::uint8_t* ARBOOST_RESTRICT touched = scratch.touched.data();
  std::int64_t* ARBOOST_RESTRICT slots = scratch.slots.data();
  for (std::size_t i = 0; i < rows.n; ++i, row_values += rows.value_stride) {
    const std::size_t code = code_of(rows, i);
    touched[code] = 1;
    for (std::size_t c = 0; c < channels; ++c) slots[code * channels + c] += row_values[c];
  }
  return list_codes<fixed_channels>(touched, slots, channels, scratch);
}

// The same marks and slots for several features of unshared columns and one channel, feature by
// feature: a row is read once, and its updates do not wait for each other.
void add_together(const FewRows& rows, const std::uint32_t* features, SplitScratch& scratch) {
  const std::uint8_t* first[codes_together];
  std::size_t stride = rows.dense.stride;
  for (std::size_t k = 0; k < codes_together; ++k) {
    if (rows.is_dense()) {
      first[k] = rows.dense.column(features[k]);
      continue;
    }
    const CodesOf<std::uint8_t> codes(*rows.codes, rows.codes->where[features[k]].store, rows.n);
    first[k] = codes.first;
    stride = codes.stride;
  }
  std::uint8_t* ARBOOST_RESTRICT touched = scratch.touched.data();
  std::int64_t* ARBOOST_RESTRICT slots = scratch.slots.data();
  for (std::size_t i = 0; i < rows.n; ++i) {
    const std::size_t at = (rows.is_dense() ? i : row_of(rows.elements[i])) * stride;
    const std::int64_t value = rows.values[i * rows.value_stride];
    for (std::size_t k = 0; k < codes_together; ++k) {
      const std::size_t slot = 256 * k + first[k][at];
      touched[slot] = 1;
      slots[slot] += value;
    }
  }
}

constexpr std::size_t most_sorted = 2048;

// Shell sort: short, in place, and good enough for so many keys.
void sort_keys(std::uint64_t* keys, std::size_t n) {
  for (const std::size_t gap : {301u, 132u, 57u, 23u, 10u, 4u, 1u})
    for (std::size_t i = gap; i < n; ++i) {
      const std::uint64_t key = keys[i];
      std::size_t j = i;
      for (; j >= gap && keys[j - gap] > key; j -= gap) keys[j] = keys[j - gap];
      keys[j] = key;
    }
}

// Two-byte codes of many rows: sums of all codes, which then move up over those of codes that do
// not occur.
std::size_t collect_counted(const CodesOf<std::uint16_t>& code_of, const FewRows& rows,
                            std::size_t n_codes, std::size_t channels, SplitScratch& scratch) {
  std::uint32_t* counts = scratch.bins.data();
  std::int64_t* prefix = scratch.prefix.data();
  const std::size_t stride = scratch.stride;
  std::memset(counts, 0, n_codes * sizeof(std::uint32_t));
  for (std::size_t c = 0; c < channels; ++c)
    std::memset(prefix + c * stride, 0, n_codes * sizeof(std::int64_t));
  for (std::size_t i = 0; i < rows.n; ++i) {
    const std::uint32_t code = code_of(rows.elements[i]);
    ++counts[code];
    for (std::size_t c = 0; c < channels; ++c)
      prefix[c * stride + code] += rows.values[i * channels + c];
  }
  std::size_t n = 0;
  for (std::size_t code = 0; code < n_codes; ++code) {
    if (counts[code] == 0) continue;
    for (std::size_t c = 0; c < channels; ++c) {
      std::int64_t* sums = prefix + c * stride;
      scratch.missing[c] = sums[code];
      sums[n] = sums[code] + (n == 0 ? 0 : sums[n - 1]);
    }
    scratch.bins[n++] = static_cast<std::uint32_t>(code);
  }
  return n;
}

// Two-byte codes of few rows: a sum of each of up to 65,536 codes would cost more than sorting the
// rows.
std::size_t collect_sorted(const CodesOf<std::uint16_t>& code_of, const FewRows& rows,
                           std::size_t channels, SplitScratch& scratch) {
  for (std::size_t i = 0; i < rows.n; ++i)
    scratch.keys[i] = std::uint64_t{code_of(rows.elements[i])} << 32 | i;
  sort_keys(scratch.keys.data(), rows.n);
  std::size_t n_codes = 0;
  for (std::size_t i = 0; i < rows.n; ++i) {
    const auto code = static_cast<std::uint32_t>(scratch.keys[i] >> 32);
    const std::int64_t* values = rows.values + (scratch.keys[i] & 0xffffffff) * channels;
    const bool fresh = n_codes == 0 || scratch.bins[n_codes - 1] != code;
    if (fresh) scratch.bins[n_codes++] = code;
    for (std::size_t c = 0; c < channels; ++c) {
      std::int64_t* prefix = scratch.prefix.data() + c * scratch.stride + (n_codes - 1);
      if (fresh) prefix[0] = n_codes == 1 ? 0 : prefix[-1];
      if (fresh) scratch.missing[c] = 0;
      prefix[0] += values[c];
      scratch.missing[c] += values[c];
    }
  }
  return n_codes;
}

// The best split of a feature whose codes are in scratch, as `collect` leaves them.
FeatureSplit find_split_listed(const GainParams& p, std::size_t n_codes, std::size_t n_bins,
                               const std::int64_t* totals, double floor, SplitScratch& scratch) {
  const bool has_missing = scratch.bins[n_codes - 1] == n_bins;
  if (has_missing) --n_codes;
  if (n_codes == 0) return {};
  const std::int64_t* missing = scratch.missing.data();
  const bool use_missing = has_missing && any_nonzero(missing, p.channels);
  FeatureSplit best =
      best_of_prefix(p, n_codes, totals, use_missing ? missing : nullptr, floor, scratch);
  // As in a histogram, codes with zero sums do not occur. The last prefix sum, over all values, has
  // been overwritten: the search writes past its entries.
  const auto is_empty = [&](std::size_t i) {
    for (int c = 0; c < p.channels; ++c) {
      const std::int64_t* sums =
          scratch.prefix.data() + static_cast<std::size_t>(c) * scratch.stride;
      const std::int64_t all = totals[c] - (has_missing ? missing[c] : 0);
      if ((i + 1 == n_codes ? all : sums[i]) != sums[i - 1]) return false;
    }
    return true;
  };
  std::size_t next = best.bin + std::size_t{1};
  while (next < n_codes && is_empty(next)) ++next;
  best.next = next < n_codes ? scratch.bins[next] : static_cast<std::uint32_t>(n_bins);
  best.bin = scratch.bins[best.bin];
  return best;
}

template <class CodeOf>
std::size_t collect_bytes(const CodeOf& code_of, const FewRows& rows, std::size_t channels,
                          SplitScratch& scratch) {
  const auto run = channels == 1   ? collect<1, CodeOf>
                   : channels == 2 ? collect<2, CodeOf>
                   : channels == 3 ? collect<3, CodeOf>
                   : channels == 4 ? collect<4, CodeOf>
                                   : collect<0, CodeOf>;
  return run(code_of, rows, channels, scratch);
}

std::size_t collect_codes(const FewRows& rows, std::size_t feature, std::size_t channels,
                          SplitScratch& scratch) {
  const Codes& codes = *rows.codes;
  if (rows.is_dense())
    return collect_bytes(DenseCodesOf{rows.dense.column(feature)}, rows, channels, scratch);
  const std::size_t store = codes.where[feature].store;
  if (codes.width == 2) {
    const CodesOf<std::uint16_t> code_of(codes, store, rows.n);
    const std::size_t n_codes = codes.n_codes(feature);
    const bool is_many = rows.n > most_sorted || rows.n > n_codes / 16;
    return is_many ? collect_counted(code_of, rows, n_codes, channels, scratch)
                   : collect_sorted(code_of, rows, channels, scratch);
  }
  const CodesOf<std::uint8_t> stored(codes, store, rows.n);
  const std::uint8_t* table = rows.table(feature);
  return table == nullptr ? collect_bytes(stored, rows, channels, scratch)
                          : collect_bytes(SharedCodesOf{stored, table}, rows, channels, scratch);
}

FeatureSplit find_split_small(const GainParams& p, const FewRows& rows, std::size_t feature,
                              double floor, SplitScratch& scratch) {
  const Codes& codes = *rows.codes;
  const std::size_t n_codes =
      collect_codes(rows, feature, static_cast<std::size_t>(p.channels), scratch);
  if (!codes.has_levels(feature))
    return find_split_listed(p, n_codes, codes.n_bins[feature], rows.totals, floor, scratch);
  scratch.levels.groups = groups_of(p.grouped, feature);
  return find_set_listed(p, n_codes, codes.n_bins[feature], rows.totals, floor, scratch);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
