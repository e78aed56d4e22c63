// Sums of 512 rows, for CPUs with look-ups of 64 bytes in a register: see predict/bits/bit_walk.h.
//
// Included by isa/variant.h inside the variant for AVX-512; the functions below also need VBMI.
#pragma once

#if defined(__AVX512BW__) && defined(__GNUC__)
#define ARBOOST_LOOKUP 1

#include <immintrin.h>

#include "predict/bits/bit_walk.h"

#define ARBOOST_LOOKUP_TARGET __attribute__((target("avx512vbmi")))

namespace arboost::ARBOOST_ISA {
namespace {

// Byte i of eight registers -> eight bytes in a row, those of i = 16 lane + 2 r + q in register r,
// 8 bytes q of the lane.
ARBOOST_LOOKUP_TARGET ARBOOST_INLINE void interleave(const __m512i* in, __m512i* out) {
  __m512i pairs[8], fours[8];
  for (int i = 0; i < 4; ++i) {
    pairs[i] = _mm512_unpacklo_epi8(in[2 * i], in[2 * i + 1]);
    pairs[i + 4] = _mm512_unpackhi_epi8(in[2 * i], in[2 * i + 1]);
  }
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 2; ++i) {
      const __m512i a = pairs[4 * half + 2 * i], b = pairs[4 * half + 2 * i + 1];
      fours[4 * half + i] = _mm512_unpacklo_epi16(a, b);
      fours[4 * half + 2 + i] = _mm512_unpackhi_epi16(a, b);
    }
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = _mm512_maskz_unpacklo_epi32(0xffff, fours[2 * i], fours[2 * i + 1]);
    out[2 * i + 1] = _mm512_maskz_unpackhi_epi32(0xffff, fours[2 * i], fours[2 * i + 1]);
  }
}

// Values as planes of bytes, 64 leaves in each: byte 0 of all, byte 1 of all, ...
std::size_t lookup_value_bytes(std::size_t n) {
  return (n <= 64 ? 64 : n <= 128 ? 128 : 256) * sizeof(double);
}

void pack_lookup_values(const double* values, std::size_t n, std::uint8_t* out) {
  const std::size_t tables = lookup_value_bytes(n) / (64 * sizeof(double));
  std::memset(out, 0, lookup_value_bytes(n));
  for (std::size_t i = 0; i < n; ++i) {
    std::uint8_t bytes[sizeof(double)];
    std::memcpy(bytes, values + i, sizeof bytes);
    for (std::size_t b = 0; b < sizeof bytes; ++b)
      out[(b * tables + i / 64) * 64 + i % 64] = bytes[b];
  }
}

ARBOOST_LOOKUP_TARGET ARBOOST_INLINE void value_planes(__m512i leaves, const std::uint8_t* table,
                                                       int tables, __m512i* planes) {
  if (tables == 1) {
    for (int b = 0; b < 8; ++b)
      planes[b] =
          _mm512_maskz_permutexvar_epi8(~__mmask64{0}, leaves, _mm512_loadu_si512(table + 64 * b));
    return;
  }
  for (int b = 0; b < 8; ++b) {
    const std::uint8_t* at = table + 64 * tables * b;
    planes[b] =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(at), leaves, _mm512_loadu_si512(at + 64));
    if (tables == 2) continue;
    const __m512i upper = _mm512_permutex2var_epi8(_mm512_loadu_si512(at + 128), leaves,
                                                   _mm512_loadu_si512(at + 192));
    planes[b] = _mm512_mask_mov_epi8(planes[b], _mm512_movepi8_mask(leaves), upper);
  }
}

// Sums of 64 rows stay in registers over all trees.
ARBOOST_LOOKUP_TARGET void add_lookup(const BitTree* trees, std::size_t n_trees,
                                      const std::uint8_t* packed, const std::uint8_t* leaves,
                                      double* sums) {
  for (std::size_t r = 0; r < bit_rows / 64; ++r, sums += 64) {
    __m512d sum[8];
    for (int s = 0; s < 8; ++s) sum[s] = _mm512_loadu_pd(sums + 8 * s);
    for (std::size_t i = 0; i < n_trees; ++i) {
      const BitTree& tree = trees[i];
      const int tables = tree.bits <= 6 ? 1 : tree.bits == 7 ? 2 : 4;
      __m512i planes[8], values[8];
      value_planes(_mm512_loadu_si512(leaves + i * bit_rows + 64 * r), packed + tree.values, tables,
                   planes);
      interleave(planes, values);
      for (int s = 0; s < 8; ++s) sum[s] = _mm512_add_pd(sum[s], _mm512_castsi512_pd(values[s]));
    }
    for (int s = 0; s < 8; ++s) _mm512_storeu_pd(sums + 8 * s, sum[s]);
  }
}

std::size_t lookup_sum_row(std::size_t position) {
  const std::size_t r = position / 64, s = position / 8 % 8, lane = position / 2 % 4,
                    q = position % 2;
  return leaf_row(64 * r + 16 * lane + 2 * s + q);
}

constexpr BitKernels lookup_table = {
    .tests = bit_tests,
    .leaves = bit_leaves,
    .leaf_row = leaf_row,
    .value_bytes = lookup_value_bytes,
    .pack_values = pack_lookup_values,
    .add = add_lookup,
    .sum_row = lookup_sum_row,
};

}  // namespace
}  // namespace arboost::ARBOOST_ISA
#endif
