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
#include "grow/search/small.h"  // bits_of_bytes

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

// 64 bits, of which bit i is 1 if fewer than `size` of n numbers are below number i.
template <std::size_t lanes>
std::uint64_t lowest_of(const std::int16_t* numbers, std::size_t n, std::size_t size) {
  alignas(64) std::uint8_t is_low[64] = {};
  std::int16_t below[lanes] = {};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < lanes; ++j) below[j] += numbers[i] < numbers[j] ? 1 : 0;
  for (std::size_t j = 0; j < lanes; ++j)
    is_low[j] = below[j] < static_cast<std::int16_t>(size) ? 1 : 0;
  return bits_of_bytes(is_low) & ((std::uint64_t{1} << n) - 1);
}

// Compares the highest bits of the hashes, all with all, in 16-bit lanes. Where those of the last
// feature and the next one are equal, more features than asked for are written.
std::size_t draw_few(std::uint64_t key, const std::uint32_t* features, std::size_t n,
                     std::size_t size, std::uint32_t* drawn) {
  static_assert(few_features == 48);
  std::uint64_t ranks[few_features];
  std::int16_t tops[few_features] = {};
  rank_features(key, features, n, ranks);
  for (std::size_t j = 0; j < n; ++j)  // unsigned order as signed
    tops[j] = static_cast<std::int16_t>(static_cast<std::uint16_t>(ranks[j] >> 48) ^ 0x8000u);
  std::uint64_t bits = n <= 16   ? lowest_of<16>(tops, n, size)
                       : n <= 32 ? lowest_of<32>(tops, n, size)
                                 : lowest_of<48>(tops, n, size);
  std::size_t n_drawn = 0;
  for (; bits != 0; bits &= bits - 1) drawn[n_drawn++] = features[std::countr_zero(bits)];
  return n_drawn;
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

}  // namespace
}  // namespace arboost::ARBOOST_ISA
