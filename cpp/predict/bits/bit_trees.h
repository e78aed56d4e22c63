// Bit-parallel evaluation of trees, 512 rows at a time: data structures and kernels.
//
// A split is a test of a row, x > threshold with a side for missing values, and many splits share
// one test. The tests of a block come first; then every tree is a program over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree/bits/bit_program.h"
#include "tree/rule.h"  // CodeSet

namespace arboost {

constexpr std::size_t bit_batch = 16;  // trees whose leaves are found before they are added

// Codes of a column are 0 to n, at most 255. Its tests are code > k for every k below n, or sets.
struct BitColumn {
  std::uint32_t n;
  std::uint32_t first;   // test of k = 0, or set
  std::uint32_t n_sets;  // 0: by thresholds
};

struct BitSet {
  std::uint32_t test;
  CodeSet right;  // codes that go right
};

struct BitTree {
  std::uint32_t program;  // where in the group's it begins
  std::uint32_t n_splits;
  std::uint8_t bits;  // of a leaf's number; the depth of an even tree
  bool even;
  std::uint32_t output;
  std::uint32_t number;  // in the forest
  std::size_t leaves;    // where its leaves begin, in the order of their numbers
  std::size_t values;    // where its values begin, of width 1
};

// Trees whose tests are evaluated together: grouped by output, otherwise in their order.
struct BitGroup {
  std::vector<BitColumn> columns;
  std::vector<BitSet> sets;
  std::size_t n_tests = 1;  // the first is passed by nobody
  std::vector<std::uint32_t> program;
  std::vector<BitTree> trees;
};

// Scratch words of `tests`, for sets of one code and of four codes; `leaves` needs fewer.
constexpr std::size_t bit_scratch_words = (256 + 64 * 16) * bit_words;

// Each variant has its own order of the rows of a block: `index` is a row's index in that order.
struct BitKernels {
  // tests[t * bit_words + ...] from codes[column * bit_rows + row].
  void (*tests)(const BitGroup& group, const std::uint8_t* codes, std::uint64_t* scratch,
                std::uint64_t* tests);

  // leaves[i * bit_rows + index] = the leaf's number in the i-th of the trees.
  void (*leaves)(const BitGroup& group, const BitTree* trees, std::size_t n_trees,
                 const std::uint64_t* tests, std::uint64_t* scratch, std::uint8_t* leaves);
  std::size_t (*leaf_row)(std::size_t position);

  // Bytes of the packed values of n leaves, and the packing.
  std::size_t (*value_bytes)(std::size_t n);
  void (*pack_values)(const double* values, std::size_t n, std::uint8_t* out);

  // sums[index] += values of the leaves, tree by tree. `packed` are the values of all trees.
  void (*add)(const BitTree* trees, std::size_t n_trees, const std::uint8_t* packed,
              const std::uint8_t* leaves, double* sums);
  std::size_t (*sum_row)(std::size_t position);
};

const BitKernels& bit_kernels();

}  // namespace arboost
