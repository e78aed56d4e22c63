// A forest of small trees -> groups of trees for bit-parallel evaluation
// (predict/bits/bit_trees.h), and their evaluation on a table. About 0.3 ns a tree and row, and 2
// ns to rank a value. Parallel over blocks of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "bin/edges/lookup.h"
#include "predict/bits/bit_trees.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

struct BitForest {
  // Ranks of a feature's values, the number of thresholds below each; or level codes.
  struct Values {
    std::size_t feature;
    bool of_levels;
    Lookup<std::uint16_t> lookup;
  };
  // A column of a group: its feature, and the code of each rank. Equal: the code is the rank, where
  // the group has all thresholds of the feature and no value is missing.
  struct Column {
    std::size_t values;
    std::vector<std::uint8_t> codes;
    bool equal;
  };
  struct Group {
    std::vector<Column> columns;
    BitGroup trees;
  };

  std::vector<Values> values;
  std::vector<Group> groups;
  std::vector<std::uint32_t> leaf_nodes;  // nodes of their trees, by tree and number
  Buffer<std::uint8_t> packed;            // values of the leaves; none where they are wide
};

// Empty if a tree has more than 256 leaves, or the thresholds of a feature exceed 16 bits. The
// forest must have been checked, as pack_trees does. Splits that differ only in the side of missing
// values share one test, unless `with_missing`.
std::optional<BitForest> bit_forest(const Forest& forest, std::size_t n_columns, bool with_missing);

// Both forms; the second is needed if a row has missing values.
struct BitForests {
  const BitForest& present;
  FunctionRef<const BitForest&()> with_missing;
};

// scores[row][output] += the trees' values, in the order of the trees.
void traverse_bits(const Columns& table, const BitForests& bits, const Forest& forest,
                   std::size_t n_outputs, Team& team, double* scores);

// As `traverse_leaves`.
void bit_leaves(const Columns& table, const BitForests& bits, std::size_t n_trees, Team& team,
                FunctionRef<void(const LeafBlock&, int member)> consume);

}  // namespace arboost
