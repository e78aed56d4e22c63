// Deep forests: thresholds and table values as ranks -> scores.
//
// Deep forests do not fit the cache, so blocks of thousands of rows pass one tree after the other.
// Nodes and rows are compact:
//
//   node   8 bytes: left child, column, number of the threshold and where missing values go
//   row    2 bytes for each column: how many thresholds of its feature are below the value
//
// Cost: about 1 ns a step of a row, and 5 ns to rank a value. Parallel over blocks of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "bin/edges/lookup.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

struct CodedForest {
  struct Tree {
    std::size_t first;        // in the nodes here
    std::size_t first_value;  // in the forest's nodes
    std::uint32_t output;
  };
  struct Column {
    std::size_t feature;
    Lookup<std::uint16_t> lookup;  // of the sorted thresholds
  };
  static constexpr std::uint32_t root = 1;  // so that the children of a node share a line

  std::vector<std::uint64_t> nodes;
  std::vector<std::uint32_t> origin;  // of each node: which one of the forest's tree it is
  std::vector<Tree> trees;
  std::size_t stride;  // numbers of a row
  std::vector<Column> columns;
};

// Empty if splits are by sets, thresholds or columns exceed 16 bits, or walks are so short that
// ranking the values of a row would not pay. The forest must have been checked, as pack_trees does.
std::optional<CodedForest> code_forest(const Forest& forest, std::size_t n_columns);

// scores[row][output] += the trees' values, in the order of the trees.
void traverse_coded(const Columns& table, const CodedForest& coded, const Forest& forest,
                    std::size_t n_outputs, Team& team, double* scores);

}  // namespace arboost
