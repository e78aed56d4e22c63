// Rows of a table of one-byte codes -> their leaves, 512 rows of the table at a time.
//
// Every split is tested for all rows, by comparisons of as many codes as fit a register, whose
// results are one bit a row; the tree is a program over these bits (tree/bits/bit_program.h). Cost:
// a split and 512 rows take about 80 instructions with AVX2, 30 with AVX-512; a walk of one row
// takes about 10 a step. Single-threaded.
//
// Included by isa/variant.h inside the variants for AVX2 and AVX-512.
#pragma once

#if defined(__AVX2__)
#define ARBOOST_WALK_TOGETHER 1

#include <immintrin.h>

#include "grow/kernels/grow_kernels.h"
#include "tree/bits/bit_planes.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Bits of the codes, of 64, that go right: n of them, from `first` on. Codes before the first wrap
// around to numbers beyond n. And the same for all codes from `first` on.
#if defined(__AVX512BW__)
ARBOOST_INLINE std::uint64_t codes_within(const std::uint8_t* codes, char first, char n) {
  const __m512i x = _mm512_sub_epi8(_mm512_loadu_si512(codes), _mm512_set1_epi8(first));
  return _mm512_cmplt_epu8_mask(x, _mm512_set1_epi8(n));
}
ARBOOST_INLINE std::uint64_t codes_from(const std::uint8_t* codes, char first) {
  return _mm512_cmpge_epu8_mask(_mm512_loadu_si512(codes), _mm512_set1_epi8(first));
}
#else
ARBOOST_INLINE std::uint64_t codes_within(const std::uint8_t* codes, char first, char n) {
  std::uint32_t others[2];
  for (int part = 0; part < 2; ++part) {
    const __m256i code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes) + part);
    const __m256i x = _mm256_sub_epi8(code, _mm256_set1_epi8(first));
    const __m256i beyond = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8(n)), x);
    others[part] = static_cast<std::uint32_t>(_mm256_movemask_epi8(beyond));
  }
  return ~(others[0] | std::uint64_t{others[1]} << 32);
}
ARBOOST_INLINE std::uint64_t codes_from(const std::uint8_t* codes, char first) {
  std::uint32_t parts[2];
  for (int part = 0; part < 2; ++part) {
    const __m256i code = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes) + part);
    const __m256i from = _mm256_cmpeq_epi8(_mm256_max_epu8(code, _mm256_set1_epi8(first)), code);
    parts[part] = static_cast<std::uint32_t>(_mm256_movemask_epi8(from));
  }
  return parts[0] | std::uint64_t{parts[1]} << 32;
}
#endif

// Bits of the codes, of 64, that are in no set. The highest bit of code c selects a half of the
// set's 32 bytes, a shuffle looks up byte c / 8, and bit c % 8 is tested.
#if defined(__AVX512BW__)
ARBOOST_INLINE std::uint64_t codes_outside(const std::uint8_t* codes, const CodeSet& set) {
  const auto half = [&](int which) {
    return _mm512_maskz_broadcast_i32x4(
        0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(set.words + 2 * which)));
  };
  const __m512i x = _mm512_loadu_si512(codes);
  const __m512i bits = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201u));
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi16(x, 3), _mm512_set1_epi8(15));
  const __m512i bit = _mm512_shuffle_epi8(bits, _mm512_and_si512(x, _mm512_set1_epi8(7)));
  const __m512i bytes = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(half(0), byte),
                                                 _mm512_movepi8_mask(x), half(1), byte);
  return _mm512_testn_epi8_mask(bytes, bit);
}
#else
ARBOOST_INLINE std::uint64_t codes_outside(const std::uint8_t* codes, const CodeSet& set) {
  const auto half = [&](int which) {
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(set.words + 2 * which)));
  };
  const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
  std::uint32_t outside[2];
  for (int part = 0; part < 2; ++part) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes) + part);
    const __m256i byte = _mm256_and_si256(_mm256_srli_epi16(x, 3), _mm256_set1_epi8(15));
    const __m256i bit = _mm256_shuffle_epi8(bits, _mm256_and_si256(x, _mm256_set1_epi8(7)));
    const __m256i bytes = _mm256_blendv_epi8(_mm256_shuffle_epi8(half(0), byte),
                                             _mm256_shuffle_epi8(half(1), byte), x);
    const __m256i none = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), _mm256_setzero_si256());
    outside[part] = static_cast<std::uint32_t>(_mm256_movemask_epi8(none));
  }
  return outside[0] | std::uint64_t{outside[1]} << 32;
}
#endif

// Blocks of a tree: the leaf numbers of 512 rows of the table from a row on.
class BlockWalk {
 public:
  explicit BlockWalk(const WalkArgs& args) : args_(args) {
    for (std::size_t w = 0; w < bit_words; ++w) tests_[w] = 0;
  }

  // The number of row `first + row` is at its place of for_leaf_rows.
  const std::uint8_t* numbers(std::size_t first) {
    const std::uint8_t* column = nullptr;
    for (std::size_t s = 0; s < args_.n_splits; ++s) {
      const std::uint32_t i = args_.splits[s];
      const WalkNode& node = args_.nodes[i];
      // Too many columns for the hardware prefetcher.
      if (node.column != column)
        for (std::size_t r = bit_rows; r < 2 * bit_rows; r += 64)
          _mm_prefetch(reinterpret_cast<const char*>(node.column + first + r), _MM_HINT_T0);
      column = node.column;
      test_split(node, column + first, tests_ + (i + 1) * bit_words);
    }
    tree_planes(*args_.program, tests_, reached_, planes_);
    leaf_bytes(planes_, numbers_);
    return numbers_;
  }

 private:
  // The rows of a block that go right.
  void test_split(const WalkNode& node, const std::uint8_t* codes, std::uint64_t* right) const {
    if (node.set != no_set) {
      for (std::size_t w = 0; w < bit_words; ++w)
        right[w] = codes_outside(codes + 64 * w, args_.sets[node.set]);
      return;
    }
    const auto from = static_cast<char>(node.bin + 1);
    if (node.missing_left > 255 && node.bin < 255) {
      for (std::size_t w = 0; w < bit_words; ++w) right[w] = codes_from(codes + 64 * w, from);
      return;
    }
    // The missing code is the highest one.
    const std::uint32_t end = node.missing_left <= 255 ? node.missing_left : 256;
    const auto n = static_cast<char>(end > node.bin ? end - node.bin - 1 : 0);
    for (std::size_t w = 0; w < bit_words; ++w) right[w] = codes_within(codes + 64 * w, from, n);
  }

  const WalkArgs& args_;
  std::uint64_t tests_[reached_words], reached_[reached_words];
  Planes planes_;
  std::uint8_t numbers_[bit_rows];
};

// All rows of the table in order, as far as whole blocks go; returns where they end.
std::size_t walk_together(const WalkArgs& args, std::size_t begin, std::size_t end,
                          std::uint32_t* leaves) {
  BlockWalk block(args);
  for (; begin + bit_rows <= end; begin += bit_rows, leaves += bit_rows) {
    const std::uint8_t* numbers = block.numbers(begin);
    for_leaf_rows([&](std::size_t row, std::size_t position) {
      leaves[row] = args.leaves[numbers[position]];
    });
  }
  return begin;
}

// Some rows of the table, which ascend: a block begins at the first row that has no leaf yet, and
// the leaves of its other rows are left out. The table has a whole block.
template <class RowAt>
void walk_some_together(const WalkArgs& args, std::size_t begin, std::size_t end, RowAt row_at,
                        std::uint32_t* leaves) {
  BlockWalk block(args);
  const std::size_t last_block = args.n_table_rows - bit_rows;
  for (std::size_t i = begin; i < end;) {
    const std::size_t row = row_at(i), first = row < last_block ? row : last_block;
    const std::uint8_t* numbers = block.numbers(first);
    do {
      leaves[i - begin] = args.leaves[numbers[leaf_place(row_at(i) - first)]];
      ++i;
    } while (i < end && row_at(i) - first < bit_rows);
  }
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
#endif
