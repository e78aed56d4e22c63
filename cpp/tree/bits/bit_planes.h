// Programs of trees -> bit planes -> leaf numbers of 512 rows: see tree/bits/bit_program.h.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "tree/bits/bit_program.h"
#include "tree/bits/bit_registers.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t most_planes = 8;
using Planes = std::uint64_t[most_planes][bit_words];

ARBOOST_INLINE Bits no_bits() {
  return of_bytes(0);
}

// Planes of the leaves below a node of a full tree, whose children follow it level by level.
template <int depth, std::size_t node>
ARBOOST_INLINE void even_planes(const std::uint64_t* tests, const std::uint32_t* program,
                                Bits* planes) {
  const Bits test = load(tests + program[node]);
  if constexpr (depth > 1) {
    Bits left[depth - 1], right[depth - 1];
    even_planes<depth - 1, 2 * node + 1>(tests, program, left);
    even_planes<depth - 1, 2 * node + 2>(tests, program, right);
    for (int j = 0; j < depth - 1; ++j) planes[j] = choose(test, right[j], left[j]);
  }
  planes[depth - 1] = test;
}

// The planes of trees up to depth 6 stay in registers; deeper trees join those below the root.
template <int depth, std::size_t node = 0>
void even_tree(const std::uint64_t* tests, const std::uint32_t* program, Planes out) {
  if constexpr (depth <= 6) {
    for (std::size_t s = 0; s < bit_words; s += register_words) {
      Bits planes[depth];
      even_planes<depth, node>(tests + s, program, planes);
      for (int j = 0; j < depth; ++j) store(planes[j], out[j] + s);
    }
  } else {
    Planes right;
    even_tree<depth - 1, 2 * node + 1>(tests, program, out);
    even_tree<depth - 1, 2 * node + 2>(tests, program, right);
    for (std::size_t s = 0; s < bit_words; s += register_words) {
      const Bits test = load(tests + program[node] + s);
      for (int j = 0; j < depth - 1; ++j)
        store(choose(test, load(right[j] + s), load(out[j] + s)), out[j] + s);
      store(test, out[depth - 1] + s);
    }
  }
}

void uneven_tree(const BitProgram& tree, const std::uint64_t* tests, std::uint64_t* reached,
                 Planes out) {
  const std::uint32_t* program = tree.steps;
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

void even_tree(int depth, const std::uint64_t* tests, const std::uint32_t* program, Planes out) {
  constexpr decltype(&even_tree<1>) by_depth[] = {even_tree<1>, even_tree<2>, even_tree<3>,
                                                  even_tree<4>, even_tree<5>, even_tree<6>,
                                                  even_tree<7>, even_tree<8>};
  if (depth > 0) by_depth[depth - 1](tests, program, out);
}

// The planes of a tree's leaf numbers; those beyond its bits are 0.
void tree_planes(const BitProgram& tree, const std::uint64_t* tests, std::uint64_t* scratch,
                 Planes out) {
  tree.even ? even_tree(tree.bits, tests, tree.steps, out) : uneven_tree(tree, tests, scratch, out);
  for (int j = tree.bits; j < static_cast<int>(most_planes); ++j)
    for (std::size_t w = 0; w < bit_words; ++w) out[j][w] = 0;
}

// Of every 2 n bits: exchanges the high n bits of `a` with the low n bits of `b`, which `low`
// masks.
ARBOOST_INLINE void swap_bits(Bits& a, Bits& b, int n, Bits low) {
  const Bits differing = (shifted_right(a, n) ^ b) & low;
  b = b ^ differing;
  a = a ^ shifted_left(differing, n);
}

// Bit planes -> leaf numbers, a byte each. Byte b of the eight planes is a matrix of 8 x 8 bits, of
// rows 8 b to 8 b + 7 of a register; all of them are transposed at once, by exchanging squares of
// 4 x 4, 2 x 2 and single bits. Register r then has the rows 8 b + r.
void leaf_bytes(const Planes planes, std::uint8_t* out) {
  const Bits low4 = of_bytes(0x0f), low2 = of_bytes(0x33), low1 = of_bytes(0x55);
  for (std::size_t s = 0; s < bit_words; s += register_words) {
    Bits rows[most_planes];
    for (std::size_t j = 0; j < most_planes; ++j) rows[j] = load(planes[j] + s);
    for (const int j : {0, 1, 2, 3}) swap_bits(rows[j], rows[j + 4], 4, low4);
    for (const int j : {0, 1, 4, 5}) swap_bits(rows[j], rows[j + 2], 2, low2);
    for (const int j : {0, 2, 4, 6}) swap_bits(rows[j], rows[j + 1], 1, low1);
    for (const Bits& row : rows) {
      store(row, reinterpret_cast<std::uint64_t*>(out));
      out += sizeof row;
    }
  }
}

std::size_t leaf_row(std::size_t position) {
  constexpr std::size_t bytes = sizeof(Bits);
  const std::size_t strip = position / (8 * bytes), r = position / bytes % 8, b = position % bytes;
  return 8 * bytes * strip + 8 * b + r;
}

// The inverse of leaf_row.
inline std::size_t leaf_place(std::size_t row) {
  constexpr std::size_t bytes = sizeof(Bits);
  return row / (8 * bytes) * (8 * bytes) + row % 8 * bytes + row / 8 % bytes;
}

// use(row, index) for all rows, in their order; `index` is that in the order of leaves.
template <class Use>
ARBOOST_INLINE void for_leaf_rows(Use use) {
  constexpr std::size_t bytes = sizeof(Bits);
  for (std::size_t first = 0; first < bit_rows; first += 8 * bytes)
    for (std::size_t b = 0; b < bytes; ++b)
      for (std::size_t r = 0; r < 8; ++r) use(first + 8 * b + r, first + bytes * r + b);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
