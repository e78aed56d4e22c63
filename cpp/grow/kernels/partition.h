// Elements of a node -> elements of its two children, without branches, which the CPU could not
// predict. About 1 ns a row. Single-threaded; callers split the node into chunks. The order inside
// a child may change: sums of integers do not depend on it.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <bit>  // popcount

#if defined(__AVX2__)
#include <immintrin.h>  // four elements at once, or eight
#endif

#include "grow/kernels/grow_kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Prefetch distance in rows: those of a deep node are scattered in the table, and a row takes less
// than a hundredth of the time that its cache line needs to arrive.
constexpr std::size_t column_distance = 128;

// The codes of one column by row, contiguous or at any distance.
template <class Code, bool contiguous>
class Column {
 public:
  explicit Column(const ColumnCodes& codes) : first_(codes.first), stride_(codes.stride) {}
  const Code* at(RowId row) const {
    return reinterpret_cast<const Code*>(first_ + row * (contiguous ? sizeof(Code) : stride_));
  }
  Code operator[](RowId row) const { return *at(row); }

  // Prefetches the codes of n elements.
  void ask(const Element* elements, std::size_t n) const {
    for (std::size_t j = 0; j < n; ++j) prefetch(at(row_of(elements[j])));
  }
  // The same before a loop over n elements that prefetches those at a distance.
  void ask_first(const Element* elements, std::size_t n) const {
    ask(elements, n < column_distance ? n : column_distance);
  }

 private:
  RowZero first_;
  std::size_t stride_;
};

#if defined(__AVX2__)

// Row m: the halves of four elements, those of the bits of m first.
alignas(32) constexpr std::uint32_t chosen_first[16][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {2, 3, 0, 1, 4, 5, 6, 7},
    {0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 0, 1, 2, 3, 6, 7}, {0, 1, 4, 5, 2, 3, 6, 7},
    {2, 3, 4, 5, 0, 1, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {6, 7, 0, 1, 2, 3, 4, 5},
    {0, 1, 6, 7, 2, 3, 4, 5}, {2, 3, 6, 7, 0, 1, 4, 5}, {0, 1, 2, 3, 6, 7, 4, 5},
    {4, 5, 6, 7, 0, 1, 2, 3}, {0, 1, 4, 5, 6, 7, 2, 3}, {2, 3, 4, 5, 6, 7, 0, 1},
    {0, 1, 2, 3, 4, 5, 6, 7}};

// Four elements at a time, those that go left first: one store writes them upwards from the left,
// another one downwards from the right, and each side advances by its own elements. The loop runs
// while the gap has room for both stores. Returns the number of processed elements; *n_left of them
// went left.
template <class Column, class GoesLeft>
std::size_t partition_fours(Column column, GoesLeft goes_left, const Element* elements,
                            std::size_t n, Element* left, Element* right_end, std::size_t* n_left) {
  std::size_t taken = 0, i = 0;
  for (; i + 8 <= n; i += 4) {
    if (i + 4 + column_distance <= n) column.ask(elements + i + column_distance, 4);
    std::uint32_t which = 0;
    for (std::size_t j = 0; j < 4; ++j)
      which |= std::uint32_t{goes_left(column[row_of(elements[i + j])])} << j;
    const __m256i four = _mm256_permutevar8x32_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(elements + i)),
        _mm256_load_si256(reinterpret_cast<const __m256i*>(chosen_first[which])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(left + taken), four);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(right_end - (i - taken) - 4), four);
    taken += static_cast<std::size_t>(std::popcount(which));
  }
  *n_left = taken;
  return i;
}

#endif

// goes_left(code) is 0 or 1. After i elements, n_left of them are on the left and i - n_left on the
// right; every element is written to both sides, and one side advances.
template <class Column, class GoesLeft>
std::size_t partition_by(Column column, GoesLeft goes_left, const Element* elements, std::size_t n,
                         Element* left, Element* right_end) {
  Element* right = right_end - 1;
  std::size_t n_left = 0, i = 0;
#if defined(__AVX2__)
  i = partition_fours(column, goes_left, elements, n, left, right_end, &n_left);
#endif
  const auto place = [&](std::size_t at, Element e, std::size_t is_left) {
    left[n_left] = e;
    *(right - (at - n_left)) = e;
    n_left += is_left;
  };
  for (; i + 4 <= n; i += 4) {
    if (i + 4 + column_distance <= n) column.ask(elements + i + column_distance, 4);
    const Element e[4] = {elements[i], elements[i + 1], elements[i + 2], elements[i + 3]};
    std::size_t is_left[4];
    for (int j = 0; j < 4; ++j) is_left[j] = goes_left(column[row_of(e[j])]);
    for (std::size_t j = 0; j < 4; ++j) place(i + j, e[j], is_left[j]);
  }
  for (; i < n; ++i) place(i, elements[i], goes_left(column[row_of(elements[i])]));
  return n_left;
}

#if defined(__AVX512VL__)

// Row k rotates lanes up by k.
alignas(64) constexpr std::int64_t lanes_up[9][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {7, 0, 1, 2, 3, 4, 5, 6}, {6, 7, 0, 1, 2, 3, 4, 5},
    {5, 6, 7, 0, 1, 2, 3, 4}, {4, 5, 6, 7, 0, 1, 2, 3}, {3, 4, 5, 6, 7, 0, 1, 2},
    {2, 3, 4, 5, 6, 7, 0, 1}, {1, 2, 3, 4, 5, 6, 7, 0}, {0, 1, 2, 3, 4, 5, 6, 7}};

// One-byte codes, eight elements at a time: those that go left are compressed and stored upwards
// from the left, the others downwards from the right. Each store writes eight elements, so the loop
// runs while the gap has room for two stores. Returns the number of processed elements; *n_left of
// them went left.
template <class Column>
std::size_t partition_eights(Column column, const CodeSet& set, const Element* elements,
                             std::size_t n, Element* left, Element* right_end,
                             std::size_t* n_left) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(set.words));
  std::size_t taken = 0, i = 0;
  for (; i + 16 <= n; i += 8) {
    if (i + 8 + column_distance <= n) column.ask(elements + i + column_distance, 8);
    std::uint64_t eight = 0;
    for (std::size_t j = 0; j < 8; ++j)
      eight |= std::uint64_t{column[row_of(elements[i + j])]} << (8 * j);
    const __m256i codes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(eight)));
    // Of the set's eight words of 32 bits, that of each code, and in it the code's bit.
    const __m256i word = _mm256_permutevar8x32_epi32(words, _mm256_srli_epi32(codes, 5));
    const __m256i bit = _mm256_srlv_epi32(word, _mm256_and_si256(codes, _mm256_set1_epi32(31)));
    const __mmask8 goes_left = _mm256_test_epi32_mask(bit, _mm256_set1_epi32(1));
    const auto k = static_cast<std::size_t>(std::popcount(std::uint32_t{goes_left}));
    const __m512i all = _mm512_loadu_si512(elements + i);
    _mm512_storeu_si512(left + taken, _mm512_maskz_compress_epi64(goes_left, all));
    const __m512i rest = _mm512_maskz_compress_epi64(static_cast<__mmask8>(~goes_left), all);
    const __m512i order = _mm512_load_si512(lanes_up[k]);
    _mm512_storeu_si512(right_end - (i - taken) - 8,
                        _mm512_maskz_permutexvar_epi64(0xff, order, rest));
    taken += k;
  }
  *n_left = taken;
  return i;
}

#endif

// One-byte codes.
template <class Column>
std::size_t partition_bytes(Column column, const SplitRule& rule, const Element* elements,
                            std::size_t n, Element* left_begin, Element* right_end) {
  const std::uint32_t bin = rule.bin, missing_left = rule.missing_left;
  std::uint8_t table[256];  // one look-up is shorter than two comparisons
  for (std::uint32_t code = 0; code < 256; ++code)
    table[code] = rule.by_set ? holds(rule.left, code) : (code <= bin) | (code == missing_left);
  std::size_t n_left = 0;
  column.ask_first(elements, n);
#if defined(__AVX512VL__)
  if (n >= 128) {  // else it is not worth the set
    CodeSet set = rule.left;
    if (!rule.by_set)
      for (std::uint32_t code = 0; code < 256; ++code)
        set.words[code >> 6] |= std::uint64_t{table[code]} << (code & 63);
    const std::size_t done =
        partition_eights(column, set, elements, n, left_begin, right_end, &n_left);
    elements += done;
    n -= done;
    right_end -= done - n_left;
    left_begin += n_left;
  }
#endif
  const auto goes_left = [&](std::uint8_t code) { return table[code]; };
  return n_left + partition_by(column, goes_left, elements, n, left_begin, right_end);
}

std::size_t partition(const ColumnCodes& codes, const SplitRule& rule, const Element* elements,
                      std::size_t n, Element* left_begin, Element* right_end) {
  const std::uint32_t bin = rule.bin, missing_left = rule.missing_left;
  const bool contiguous = codes.stride == static_cast<std::size_t>(codes.width);
  if (codes.width == 1)
    return contiguous ? partition_bytes(Column<std::uint8_t, true>(codes), rule, elements, n,
                                        left_begin, right_end)
                      : partition_bytes(Column<std::uint8_t, false>(codes), rule, elements, n,
                                        left_begin, right_end);
  const auto in_set = [set = rule.left](std::uint32_t code) -> std::uint8_t {
    return holds(set, code);
  };
  const auto follows = [=](std::uint32_t code) -> std::uint8_t {
    return (code <= bin) | (code == missing_left);
  };
  const auto run = [&](auto column) {
    column.ask_first(elements, n);
    return rule.by_set ? partition_by(column, in_set, elements, n, left_begin, right_end)
                       : partition_by(column, follows, elements, n, left_begin, right_end);
  };
  if (codes.width == 4) return run(Column<std::uint32_t, true>(codes));
  return contiguous ? run(Column<std::uint16_t, true>(codes))
                    : run(Column<std::uint16_t, false>(codes));
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
