// Rows -> norms of their gradients; rows -> sampled rows with weights. About 1 ns a row each.
// Single-threaded; callers split the rows.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <bit>    // countr_zero, popcount
#include <cmath>  // sqrt

#if defined(__AVX2__)
#include <immintrin.h>  // eight rows at once
#endif

#include "base/random.h"  // mix_bits
#include "grow/kernels/draw_row.h"
#include "grow/kernels/grow_kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

void gradient_norms(const NormArgs& args, std::size_t begin, std::size_t end, float* norms) {
  const std::size_t n = end - begin;
  for (std::size_t i = 0; i < n; ++i) norms[i] = 0;
  for (std::size_t k = 0; k < args.outputs; ++k) {
    const FixedPair* ARBOOST_RESTRICT pairs =
        args.pairs + k * args.output_stride + begin * args.row_stride;
    const auto add = [&](std::size_t i, const FixedPair& pair) {
      norms[i] += square_of(args, pair);
    };
    if (args.row_stride == 1)  // said to the compiler, so that it loads whole vectors
      for (std::size_t i = 0; i < n; ++i) add(i, pairs[i]);
    else
      for (std::size_t i = 0; i < n; ++i) add(i, pairs[i * args.row_stride]);
  }
  if (args.squared) return;
  for (std::size_t i = 0; i < n; ++i) norms[i] = std::sqrt(norms[i]);
}

constexpr std::size_t draw_block = 512;

#if defined(__AVX2__)
// By the mark of eight lanes: the numbers of those that are marked, a byte each.
struct KeptLanes {
  std::uint64_t of[256] = {};
  constexpr KeptLanes() {
    for (std::uint32_t marks = 0; marks < 256; ++marks)
      for (std::uint64_t lane = 0, n = 0; lane < 8; ++lane)
        if ((marks >> lane & 1) != 0) of[marks] |= lane << 8 * n++;
  }
};
constexpr KeptLanes kept_lanes;
#endif

// Marks of a block of rows -> positions and weights, behind the n that are there. Both are written
// whether the row is kept or not: no branch.
inline std::size_t append_kept(const std::uint32_t* kept, const float* block_weights,
                               std::size_t first, std::size_t size, std::size_t n,
                               std::uint32_t* positions, float* weights) {
  const auto start = static_cast<std::uint32_t>(first);
  std::uint32_t j = 0;
#if defined(__AVX2__)
  for (; j + 8 <= size; j += 8) {
    const __m256i marks = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kept + j));
    const int marked = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_slli_epi32(marks, 31)));
    const __m256i lanes = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kept_lanes.of + marked)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(positions + n),
                        _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(start + j))));
    if (weights != nullptr)
      _mm256_storeu_ps(weights + n,
                       _mm256_permutevar8x32_ps(_mm256_loadu_ps(block_weights + j), lanes));
    n += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(marked)));
  }
#endif
  for (; j < size; ++j) {
    positions[n] = start + j;
    if (weights != nullptr) weights[n] = block_weights[j];
    n += kept[j];
  }
  return n;
}

// Marks n rows from `first` on, and weights them.
template <class Args>
void mark_by_norms(const Args& args, std::uint32_t first, std::size_t n,
                   std::uint32_t* ARBOOST_RESTRICT kept, float* ARBOOST_RESTRICT weights) {
  const Args a = args;
  float norms[draw_block];
  gradient_norms(a.norms, first, first + n, norms);
  for (std::uint32_t j = 0; j < n; ++j) {
    const DrawnRow row = draw_row(a, first + j, norms[j]);
    weights[j] = row.weight;
    kept[j] = row.kept;
  }
}

// The rows are marked in blocks, in loops that vectorise, and then collected.
template <class Mark>
std::size_t draw_blocks(std::size_t begin, std::size_t end, std::uint32_t* positions,
                        float* weights, Mark mark) {
  std::uint32_t kept[draw_block];
  float block_weights[draw_block];
  std::size_t n = 0;
  for (std::size_t first = begin; first < end; first += draw_block) {
    const std::size_t size = end - first < draw_block ? end - first : draw_block;
    mark(static_cast<std::uint32_t>(first), size, kept, block_weights);
    n = append_kept(kept, block_weights, first, size, n, positions, weights);
  }
  return n;
}

std::size_t draw(const DrawArgs& args, std::size_t begin, std::size_t end, std::uint32_t* positions,
                 float* weights) {
  if (args.norms.pairs != nullptr)
    return draw_blocks(begin, end, positions, weights,
                       [&](auto... of) { mark_by_norms(args, of...); });
  return draw_blocks(begin, end, positions, nullptr,
                     [a = args](std::uint32_t first, std::size_t n, std::uint32_t* kept, float*) {
                       for (std::uint32_t j = 0; j < n; ++j) kept[j] = draw_row(a, first + j).kept;
                     });
}

std::size_t draw_top(const TopArgs& args, std::size_t begin, std::size_t end,
                     std::uint32_t* positions, float* weights) {
  return draw_blocks(begin, end, positions, weights,
                     [&](auto... of) { mark_by_norms(args, of...); });
}

void rank_features(std::uint64_t key, const std::uint32_t* features, std::size_t n,
                   std::uint64_t* ranks) {
  for (std::size_t j = 0; j < n; ++j) ranks[j] = mix_bits(mix_bits(key + features[j]));
}

// Counts the smaller numbers of each number, vectorised.
std::uint64_t nth_of_few(const std::uint64_t* numbers, std::size_t n, std::size_t nth) {
  constexpr std::size_t lanes = 8;
  for (std::size_t first = 0; first < n; first += lanes) {
    std::uint64_t numbers_of_lanes[lanes], below[lanes] = {};
    for (std::size_t j = 0; j < lanes; ++j)
      numbers_of_lanes[j] = numbers[first + j < n ? first + j : n - 1];
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < lanes; ++j) below[j] += numbers[i] < numbers_of_lanes[j] ? 1 : 0;
    for (std::size_t j = 0; j < lanes; ++j)
      if (below[j] == nth) return numbers_of_lanes[j];
  }
  return numbers[0];  // only where numbers are equal
}

// 64 bits, of which bit i is 1 if the highest 16 bits of number i are above those of fewer than
// `size` of n numbers. Numbers are padded to whole groups of 16.
template <std::size_t groups>
inline std::uint64_t lowest_of(const std::uint64_t* numbers, std::size_t n, std::size_t size) {
  constexpr std::size_t lanes = 16;
  alignas(32) std::int16_t tops[groups * lanes];  // unsigned order as signed
  std::uint64_t bits = 0;
#if defined(__AVX2__)
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i top[groups], above[groups];
  for (std::size_t g = 0; g < groups; ++g) {
    const auto load = [from = numbers + g * lanes](std::size_t i) {
      return _mm256_srli_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)), 48);
    };
    const auto join = [](__m256i a, __m256i b) {  // of 64 bits the lower 32
      return _mm256_castps_si256(
          _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
    };
    const __m256i packed = _mm256_packus_epi32(join(load(0), load(4)), join(load(8), load(12)));
    top[g] = _mm256_xor_si256(_mm256_permutevar8x32_epi32(packed, order),
                              _mm256_set1_epi16(std::int16_t{-0x8000}));
    _mm256_store_si256(reinterpret_cast<__m256i*>(tops + g * lanes), top[g]);
    above[g] = _mm256_setzero_si256();
  }
  for (std::size_t i = 0; i < n; ++i) {
    const __m256i other = _mm256_set1_epi16(tops[i]);
    for (std::size_t g = 0; g < groups; ++g)
      above[g] = _mm256_sub_epi16(above[g], _mm256_cmpgt_epi16(top[g], other));
  }
  for (std::size_t g = 0; g < groups; ++g) {
    const __m256i is_low =
        _mm256_cmpgt_epi16(_mm256_set1_epi16(static_cast<std::int16_t>(size)), above[g]);
    const __m256i bytes =
        _mm256_permute4x64_epi64(_mm256_packs_epi16(is_low, _mm256_setzero_si256()), 0xd8);
    bits |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes))} << g * lanes;
  }
#else
  std::int16_t above[groups * lanes] = {};
  for (std::size_t j = 0; j < groups * lanes; ++j)
    tops[j] = static_cast<std::int16_t>(static_cast<std::uint16_t>(numbers[j] >> 48) ^ 0x8000u);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < groups * lanes; ++j) above[j] += tops[i] < tops[j] ? 1 : 0;
  for (std::size_t j = 0; j < groups * lanes; ++j)
    bits |= std::uint64_t{above[j] < static_cast<std::int16_t>(size)} << j;
#endif
  return bits & ((std::uint64_t{1} << n) - 1);
}

// Bits of those of n <= few_features features that have the `size` lowest hashes under the key. Of
// the hashes, 16 bits are compared, all with all; where these leave the last feature in doubt, all
// bits are.
inline std::uint64_t draw_bits(std::uint64_t key, const std::uint32_t* features, std::size_t n,
                               std::size_t size) {
  static_assert(few_features == 48);
  if (size == n) return (std::uint64_t{1} << n) - 1;
  std::uint64_t ranks[few_features] = {};
  rank_features(key, features, n, ranks);
  const std::uint64_t bits = n <= 16   ? lowest_of<1>(ranks, n, size)
                             : n <= 32 ? lowest_of<2>(ranks, n, size)
                                       : lowest_of<3>(ranks, n, size);
  if (static_cast<std::size_t>(std::popcount(bits)) == size) return bits;
  const std::uint64_t last = nth_of_few(ranks, n, size - 1);
  std::uint64_t exact = 0;
  for (std::size_t j = 0; j < n; ++j) exact |= std::uint64_t{ranks[j] <= last} << j;
  return exact;
}

void draw_few(std::uint64_t key, const std::uint32_t* features, std::size_t n, std::size_t size,
              std::uint32_t* drawn) {
  for (std::uint64_t bits = draw_bits(key, features, n, size); bits != 0; bits &= bits - 1)
    *drawn++ = features[std::countr_zero(bits)];
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
