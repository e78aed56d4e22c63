// Trees and rows as kernels of prediction see them.
//
// A row is a few words of codes. The code of a missing value is 0, that of any other 1 + the number
// of thresholds of its feature that it is above; of a category, 1 + its level code. A row goes
// right if code - shift > number, without signs: shift is 0 where missing values go left, else 1.
#pragma once

#include <cstdint>

#include "bin/device/bin_records.h"  // DeviceColumn
#include "tree/split_rule.h"         // CodeSet

namespace arboost::cuda {

// Values of a column -> codes.
struct CodedColumn {
  enum Kind : std::uint32_t { thresholds, level_codes };
  DeviceColumn column;
  Kind kind;
  std::uint32_t first, n;  // thresholds, ascending
};

struct CodedColumns {
  const CodedColumn* columns;
  const double* thresholds;  // of all columns
  std::uint32_t n_columns;
  std::uint32_t per_word;  // codes: 4, 2 or 1
};

// Words of some rows: word w of row i is words[w * n_rows + i].
struct CodedRows {
  const std::uint32_t* words;
  std::uint64_t n_rows;
  std::uint32_t n_words;
  std::uint32_t per_word;
};

// A node of any tree, in the order of the model. A leaf has no child.
struct alignas(16) ForestNode {
  std::uint32_t next;     // left child; the right one follows it
  std::uint32_t column;   // and the two flags below
  std::uint64_t content;  // number or set of a split; of a leaf, the bits of its first value
};
constexpr std::uint32_t shift_flag = 1u << 31, set_flag = 1u << 30, column_mask = set_flag - 1;

struct AnyTrees {
  const ForestNode* nodes;
  const std::uint64_t* tree_start;
  const std::uint32_t* order;         // trees by output, those of one output in their order
  const std::uint32_t* output_start;  // in the order
  std::uint32_t n_trees, n_outputs, width;
  const double* values;  // [node][width]
  const CodeSet* sets;
};

// Trees of few levels, completed to the same depth: node i has the children 2 i and 2 i + 1, from 1
// on; then come the values. A node is
//
//   offset of its code (16 bits) | set, bits 8 to 13 (6) | by_set | shift | number or set (8)
//
// Groups of trees pass through shared memory, next to the words of `block_rows` rows.
constexpr std::uint32_t small_shift = 1u << 8, small_set = 1u << 9;
struct TreeGroup {
  std::uint32_t first, n, output;
  std::uint32_t is_first, is_last;  // of the output
};
struct SmallTrees {
  const std::uint32_t* nodes;
  const double* values;
  const TreeGroup* groups;
  std::uint32_t n_groups, most_trees;  // of a group
  std::uint32_t depth, block_rows;
  const CodeSet* sets;
};
constexpr std::uint32_t rows_at_once = 2;

// scores[row][output] = base + sum of the trees; or base + sum / mean_of, where that is not 0.
struct ScoreRows {
  double* scores;
  const double* base;
  double mean_of;
  std::uint32_t n_outputs;
};

constexpr std::uint32_t code_threads = 256, code_tile = 4096;
constexpr std::uint32_t walk_threads = 128, outputs_at_once = 8;

// A number of bits of a word, for codes of a row.
struct CodePlace {
  std::uint32_t word, shift, mask;
};
inline CodePlace place_of(std::uint32_t column, std::uint32_t per_word) {
  if (per_word == 4) return {column >> 2, (column & 3) * 8, 0xffu};
  if (per_word == 2) return {column >> 1, (column & 1) * 16, 0xffffu};
  return {column, 0, 0xffffffffu};
}

}  // namespace arboost::cuda
