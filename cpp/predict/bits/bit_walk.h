// Codes -> tests -> leaves -> sums of 512 rows: see predict/bits/bit_trees.h.
//
// All thresholds of a column cost two operations each on 512 bits: with the codes as bit planes,
// code > k on the low j + 1 bits is b | (code > k) or b & (code > k) on the low j. Cost: about one
// instruction a tree and row.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <cstring>  // memcpy

#include "predict/bits/bit_registers.h"
#include "predict/bits/bit_trees.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t most_planes = 8;
using Planes = std::uint64_t[most_planes][bit_words];

ARBOOST_INLINE Bits no_bits() {
  constexpr std::uint64_t zeros[bit_words] = {};
  return load(zeros);
}

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

// out[k]: code > k, for k below n.
void threshold_tests(const std::uint8_t* codes, std::uint32_t n, std::uint64_t* out) {
  if (n == 0) return;
  Planes planes;
  const int n_planes = width_of(n);
  code_planes(codes, n_planes, planes);
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    std::uint64_t* at = out + s;
    store(no_bits(), at);
    for (int j = 0; j < n_planes; ++j) {
      const Bits bit = load(planes[j] + s);
      const std::size_t half = std::size_t{1} << j;
      const std::size_t upper = 2 * half <= n ? half : n - half;
      for (std::size_t k = 0; k < half; ++k) {
        const Bits below = load(at + k * bit_words);
        if (k < upper) store(bit & below, at + (k + half) * bit_words);
        store(bit | below, at + k * bit_words);
      }
    }
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
    Bits found = no_bits();
    for (std::uint32_t four = 0; four <= n / 4; ++four) {
      const std::uint64_t set = right.words[four / 16] >> (4 * (four % 16)) & 15;
      found = found | load(fours + (16 * four + set) * bit_words + s);
    }
    store(found, out + s);
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

// Planes of the leaves below a node of a full tree, whose children follow it level by level.
template <int depth>
ARBOOST_INLINE void even_planes(const std::uint64_t* tests, const std::uint32_t* program,
                                std::size_t node, Bits* planes) {
  const Bits test = load(tests + program[node]);
  if constexpr (depth > 1) {
    Bits left[depth - 1], right[depth - 1];
    even_planes<depth - 1>(tests, program, 2 * node + 1, left);
    even_planes<depth - 1>(tests, program, 2 * node + 2, right);
    for (int j = 0; j < depth - 1; ++j) planes[j] = choose(test, right[j], left[j]);
  }
  planes[depth - 1] = test;
}

template <int depth>
void even_tree(const std::uint64_t* tests, const std::uint32_t* program, std::size_t node,
               std::uint64_t (*out)[bit_words]) {
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    Bits planes[depth];
    even_planes<depth>(tests + s, program, node, planes);
    for (int j = 0; j < depth; ++j) store(planes[j], out[j] + s);
  }
}

// Deeper trees join those below the root.
template <>
void even_tree<7>(const std::uint64_t* tests, const std::uint32_t* program, std::size_t node,
                  std::uint64_t (*out)[bit_words]) {
  Planes right;
  even_tree<6>(tests, program, 2 * node + 1, out);
  even_tree<6>(tests, program, 2 * node + 2, right);
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    const Bits test = load(tests + program[node] + s);
    for (int j = 0; j < 6; ++j)
      store(choose(test, load(right[j] + s), load(out[j] + s)), out[j] + s);
    store(test, out[6] + s);
  }
}
template <>
void even_tree<8>(const std::uint64_t* tests, const std::uint32_t* program, std::size_t node,
                  std::uint64_t (*out)[bit_words]) {
  Planes right;
  even_tree<7>(tests, program, 2 * node + 1, out);
  even_tree<7>(tests, program, 2 * node + 2, right);
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    const Bits test = load(tests + program[node] + s);
    for (int j = 0; j < 7; ++j)
      store(choose(test, load(right[j] + s), load(out[j] + s)), out[j] + s);
    store(test, out[7] + s);
  }
}

void uneven_tree(const BitTree& tree, const std::uint32_t* program, const std::uint64_t* tests,
                 std::uint64_t* reached, Planes out) {
  for (std::size_t w = 0; w < bit_words; ++w) reached[w] = ~std::uint64_t{0};
  for (std::size_t i = 0; i < tree.n_splits; ++i, program += 3)
    for (std::size_t s = 0; s < bit_words; s += register_words) {
      const Bits test = load(tests + program[0] + s);
      const Bits here = load(reached + program[1] * bit_words + s);
      std::uint64_t* left = reached + program[2] * bit_words + s;
      store(without(here, test), left);
      store(here & test, left + bit_words);
    }
  for (int j = 0; j < tree.bits; ++j) {
    Bits plane[bit_words / register_words];
    for (Bits& part : plane) part = no_bits();
    for (; *program != no_node; ++program)
      for (std::size_t s = 0; s < bit_words; s += register_words) {
        Bits& part = plane[s / register_words];
        part = part ^ load(reached + *program * bit_words + s);
      }
    ++program;
    for (std::size_t s = 0; s < bit_words; s += register_words)
      store(plane[s / register_words], out[j] + s);
  }
}

// The planes of a tree's leaves; those beyond its bits are left alone.
void tree_planes(const BitGroup& group, const BitTree& tree, const std::uint64_t* tests,
                 std::uint64_t* scratch, Planes out) {
  const std::uint32_t* program = group.program.data() + tree.program;
  if (!tree.even) return uneven_tree(tree, program, tests, scratch, out);
  switch (tree.bits) {
    case 0:
      return;
    case 1:
      return even_tree<1>(tests, program, 0, out);
    case 2:
      return even_tree<2>(tests, program, 0, out);
    case 3:
      return even_tree<3>(tests, program, 0, out);
    case 4:
      return even_tree<4>(tests, program, 0, out);
    case 5:
      return even_tree<5>(tests, program, 0, out);
    case 6:
      return even_tree<6>(tests, program, 0, out);
    case 7:
      return even_tree<7>(tests, program, 0, out);
    default:
      return even_tree<8>(tests, program, 0, out);
  }
}

template <void (*to_bytes)(const Planes, std::uint8_t*)>
void bit_leaves(const BitGroup& group, const BitTree* trees, std::size_t n_trees,
                const std::uint64_t* tests, std::uint64_t* scratch, std::uint8_t* leaves) {
  Planes planes;
  for (std::size_t i = 0; i < n_trees; ++i) {
    for (int j = trees[i].bits; j < static_cast<int>(most_planes); ++j)
      for (std::size_t w = 0; w < bit_words; ++w) planes[j][w] = 0;
    tree_planes(group, trees[i], tests, scratch, planes);
    to_bytes(planes, leaves + i * bit_rows);
  }
}

// 64 transpositions of 8 x 8 bits.
void plain_bytes(const Planes planes, std::uint8_t* out) {
  std::uint64_t square[bit_rows / 8] = {};
  for (std::size_t j = 0; j < most_planes; ++j) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(planes[j]);
    for (std::size_t i = 0; i < bit_rows / 8; ++i)
      square[i] |= static_cast<std::uint64_t>(bytes[i]) << (8 * j);
  }
  const auto swap = [](std::uint64_t x, int by, std::uint64_t mask) {
    const std::uint64_t differing = (x ^ (x >> by)) & mask;
    return x ^ differing ^ (differing << by);
  };
  for (std::uint64_t& x : square) {
    x = swap(x, 7, 0x00AA00AA00AA00AAu);
    x = swap(x, 14, 0x0000CCCC0000CCCCu);
    x = swap(x, 28, 0x00000000F0F0F0F0u);
  }
  std::memcpy(out, square, sizeof square);
}

std::size_t same_row(std::size_t place) {
  return place;
}

std::size_t plain_value_bytes(std::size_t n) {
  return n * sizeof(double);
}

void pack_plain_values(const double* values, std::size_t n, std::uint8_t* out) {
  std::memcpy(out, values, n * sizeof(double));
}

void add_plain(const BitTree* trees, std::size_t n_trees, const std::uint8_t* packed,
               const std::uint8_t* leaves, double* sums) {
  for (std::size_t i = 0; i < n_trees; ++i, leaves += bit_rows) {
    const auto* values = reinterpret_cast<const double*>(packed + trees[i].values);
    for (std::size_t row = 0; row < bit_rows; ++row) sums[row] += values[leaves[row]];
  }
}

constexpr BitKernels bits_table = {
    .tests = bit_tests,
    .leaves = bit_leaves<plain_bytes>,
    .leaf_row = same_row,
    .value_bytes = plain_value_bytes,
    .pack_values = pack_plain_values,
    .add = add_plain,
    .sum_row = same_row,
};

}  // namespace
}  // namespace arboost::ARBOOST_ISA
