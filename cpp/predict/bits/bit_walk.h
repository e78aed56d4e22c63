// Tests -> leaves -> sums of 512 rows: see predict/bits/bit_trees.h.
//
// Cost: about 4 instructions a tree and row. Half of them look up the value of the leaf.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <cstring>  // memcpy

#include "predict/bits/bit_tests.h"
#include "predict/bits/bit_trees.h"
#include "tree/bits/bit_planes.h"

namespace arboost::ARBOOST_ISA {
namespace {

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
