// Codes of 512 rows -> results of all tests of a group -> leaves -> sums: see
// predict/bits/bit_trees.h.
//
// Cost: two operations on 512 bits for each threshold, and one for each four codes of a set; then
// about 4 instructions a tree and row. Half of them look up the value of the leaf.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <cstring>  // memcpy

#include "predict/bits/bit_trees.h"
#include "tree/bits/bit_planes.h"

namespace arboost::ARBOOST_ISA {
namespace {

// planes[j]: bit j of 512 codes.
void code_planes(const std::uint8_t* codes, int n_planes, Planes planes) {
  for (std::size_t w = 0; w < bit_words; ++w) {
    const std::uint8_t* at = codes + 64 * w;
    for (int j = 0; j < n_planes; ++j) {
      std::uint64_t word = 0;
#if defined(__AVX512BW__)
      word =
          _mm512_movepi8_mask(_mm512_sll_epi16(_mm512_loadu_si512(at), _mm_cvtsi32_si128(7 - j)));
#elif defined(__SSE2__)
      for (int part = 0; part < 4; ++part) {
        const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + part);
        const int bits = _mm_movemask_epi8(_mm_sll_epi16(some, _mm_cvtsi32_si128(7 - j)));
        word |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(bits)) << (16 * part);
      }
#else
      for (int i = 0; i < 64; ++i) word |= static_cast<std::uint64_t>(at[i] >> j & 1) << i;
#endif
      planes[j][w] = word;
    }
  }
}

int width_of(std::uint32_t n) {
  int bits = 0;
  for (; n > 0; n >>= 1) ++bits;
  return bits;
}

// out[k]: code > k, for k below 2^n_planes, with the codes as bit planes: code > k on the low j + 1
// bits is b | (code > k) or b & (code > k) on the low j.
ARBOOST_INLINE void all_thresholds(const std::uint64_t (*planes)[bit_words], int n_planes,
                                   std::uint64_t (*out)[bit_words]) {
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    store(no_bits(), out[0] + s);
    for (int j = 0; j < n_planes; ++j) {
      const Bits bit = load(planes[j] + s);
      const std::size_t half = std::size_t{1} << j;
      for (std::size_t k = 0; k < half; ++k) {
        const Bits below = load(out[k] + s);
        store(bit & below, out[k + half] + s);
        store(bit | below, out[k] + s);
      }
    }
  }
}

// out[k]: code > k, for k below n. With the codes and k as high and low parts, this is
// high > k's high, or high >= k's high and low > k's low: two operations, and each test is written
// once.
void threshold_tests(const std::uint8_t* codes, std::uint32_t n, std::uint64_t* out) {
  if (n == 0) return;
  constexpr int low_planes = 3;
  constexpr std::size_t lows = 1 << low_planes;
  Planes planes;
  const int n_planes = width_of(n) < low_planes ? low_planes : width_of(n);
  code_planes(codes, n_planes, planes);
  std::uint64_t low[lows][bit_words], high[1 + 256 / lows][bit_words];
  all_thresholds(planes, low_planes, low);
  all_thresholds(planes + low_planes, n_planes - low_planes, high + 1);
  for (std::uint64_t& word : high[0]) word = ~std::uint64_t{0};
  for (std::size_t h = 0; lows * h < n; ++h) {
    const std::size_t n_here = lows < n - lows * h ? lows : n - lows * h;
    for (std::size_t k = 0; k < n_here; ++k, out += bit_words)
      for (std::size_t s = 0; s < bit_words; s += register_words)
        store(load(high[h + 1] + s) | (load(high[h] + s) & load(low[k] + s)), out + s);
  }
}

// code > k, for all k below n -> code == k, for all k up to n.
void single_codes(std::uint32_t n, std::uint64_t* codes) {
  for (std::size_t w = 0; w < bit_words; ++w) codes[n * bit_words + w] = 0;
  for (std::size_t i = (n + 1) * bit_words; i-- > bit_words;)
    codes[i] = codes[i - bit_words] & ~codes[i];
  for (std::size_t w = 0; w < bit_words; ++w) codes[w] = ~codes[w];
}

// Rows in each of the 16 subsets of four consecutive codes: a set of codes is then the union of few
// parts, without branches.
void fours_of_codes(const std::uint64_t* codes, std::uint32_t n, std::uint64_t* fours) {
  constexpr std::uint32_t lowest[16] = {0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0};
  for (std::uint32_t first = 0; first <= n; first += 4, fours += 16 * bit_words)
    for (std::size_t s = 0; s < bit_words; s += register_words) {
      store(no_bits(), fours + s);
      for (std::uint32_t set = 1; set < 16; ++set) {
        const std::uint32_t code = first + lowest[set];
        Bits rows = load(fours + (set & (set - 1)) * bit_words + s);
        if (code <= n) rows = rows | load(codes + code * bit_words + s);
        store(rows, fours + set * bit_words + s);
      }
    }
}

// Rows whose code is in a set.
void set_test(const std::uint64_t* fours, std::uint32_t n, const CodeSet& right,
              std::uint64_t* out) {
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    Bits bits_of_tests = no_bits();
    for (std::uint32_t four = 0; four <= n / 4; ++four) {
      const std::uint64_t set = right.words[four / 16] >> (4 * (four % 16)) & 15;
      bits_of_tests = bits_of_tests | load(fours + (16 * four + set) * bit_words + s);
    }
    store(bits_of_tests, out + s);
  }
}

void bit_tests(const BitGroup& group, const std::uint8_t* codes, std::uint64_t* scratch,
               std::uint64_t* tests) {
  for (std::size_t w = 0; w < bit_words; ++w) tests[w] = 0;
  for (const BitColumn& column : group.columns) {
    std::uint64_t* out = column.n_sets == 0 ? tests + column.first * bit_words : scratch;
    threshold_tests(codes, column.n, out);
    codes += bit_rows;
    if (column.n_sets == 0) continue;
    std::uint64_t* fours = scratch + 256 * bit_words;
    single_codes(column.n, scratch);
    fours_of_codes(scratch, column.n, fours);
    for (std::uint32_t i = 0; i < column.n_sets; ++i) {
      const BitSet& set = group.sets[column.first + i];
      set_test(fours, column.n, set.right, tests + set.test * bit_words);
    }
  }
}

void bit_leaves(const BitGroup& group, const BitTree* trees, std::size_t n_trees,
                const std::uint64_t* tests, std::uint64_t* scratch, std::uint8_t* leaves) {
  Planes planes;
  for (std::size_t i = 0; i < n_trees; ++i) {
    const BitTree& tree = trees[i];
    tree_planes({group.program.data() + tree.program, tree.n_splits, tree.bits, tree.even}, tests,
                scratch, planes);
    leaf_bytes(planes, leaves + i * bit_rows);
  }
}

std::size_t value_bytes(std::size_t n) {
  return n * sizeof(double);
}

void pack_values(const double* values, std::size_t n, std::uint8_t* out) {
  std::memcpy(out, values, n * sizeof(double));
}

// Adds the values of two leaves, the low bytes of a word, which moves on to the next two.
ARBOOST_INLINE void add_two(const double* values, std::uint64_t& leaves, Pair& sum) {
  sum = sum + pair_of(values + (leaves & 0xff), values + (leaves >> 8 & 0xff));
  leaves >>= 16;
#if defined(__GNUC__) && defined(__x86_64__)
  asm("" : "+Q"(leaves));  // one shift for two leaves: compilers would make one for each
#endif
}

// Sums of 16 rows stay in registers over all trees. A load and half an addition for a row are left,
// and two instructions that find its leaf in a word of eight: a CPU loads less than it computes.
void add_values(const BitTree* trees, std::size_t n_trees, const std::uint8_t* packed,
                const std::uint8_t* leaves, double* sums) {
  constexpr std::size_t lanes = 16;
  for (std::size_t row = 0; row < bit_rows; row += lanes, sums += lanes) {
    Pair sum[lanes / 2];
    for (std::size_t j = 0; j < lanes / 2; ++j) sum[j] = load_pair(sums + 2 * j);
    for (std::size_t i = 0; i < n_trees; ++i) {
      const auto* values = reinterpret_cast<const double*>(packed + trees[i].values);
      const std::uint8_t* leaf = leaves + i * bit_rows + row;
      std::uint64_t first, second;
      std::memcpy(&first, leaf, sizeof first);
      std::memcpy(&second, leaf + sizeof first, sizeof second);
      for (std::size_t j = 0; j < 4; ++j) add_two(values, first, sum[j]);
      for (std::size_t j = 4; j < 8; ++j) add_two(values, second, sum[j]);
    }
    for (std::size_t j = 0; j < lanes / 2; ++j) store(sum[j], sums + 2 * j);
  }
}

constexpr BitKernels bits_table = {
    .tests = bit_tests,
    .leaves = bit_leaves,
    .leaf_row = leaf_row,
    .value_bytes = value_bytes,
    .pack_values = pack_values,
    .add = add_values,
    .sum_row = leaf_row,
};

}  // namespace

}  // namespace arboost::ARBOOST_ISA
