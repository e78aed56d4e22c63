// Trees and a table -> scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "table/columns.h"

namespace arboost {

// Views of the arrays of arboost.model.Forest: nodes of tree t at tree_start[t] to
// tree_start[t + 1], left = index of the left child in its tree (right = left + 1), 0 for a leaf.
struct Forest {
  std::span<const std::int64_t> tree_start;  // [n_trees + 1]
  std::span<const std::int32_t> feature;     // [n_nodes], as the next four
  std::span<const double> threshold;
  std::span<const std::int32_t> left;
  std::span<const std::uint8_t> default_left;
  std::span<const std::int32_t> level_set;    // which set of levels goes left; -1: by threshold
  std::span<const std::uint64_t> level_sets;  // [n_sets][4]: level c is bit c % 64 of word c / 64
  std::span<const double> value;              // [n_nodes][width]
  std::span<const std::int32_t> output;       // [n_trees]
  std::size_t width;                          // 1, or the number of outputs
};

struct TreeRange {
  std::size_t begin, end;
};

// A split by a set takes what a row has in its column for the code of a level; values that are no
// integers from 0 to 254 are missing.
//
// scores[row][output] += what the trees of the range say, tree by tree in their order: the result
// depends neither on the team nor on how the rows are cut into blocks.
// Throws std::invalid_argument where a tree leads outside its nodes, the table or the scores.
void traverse(const Columns& table, const Forest& forest, TreeRange trees, std::size_t n_outputs,
              Team& team, double* scores);

// Leaves that rows reach in the first trees: `consume` gets leaf[tree * stride + row - begin], as a
// node of its tree, for a few rows at a time, in any order and from all members of the team.
struct LeafBlock {
  const std::uint32_t* leaf;
  std::size_t stride;
  std::size_t begin, end;  // rows
};
void traverse_leaves(const Columns& table, const Forest& forest, std::size_t n_trees, Team& team,
                     FunctionRef<void(const LeafBlock&, int member)> consume);

}  // namespace arboost
