// A forest of small trees -> groups of trees that are walked by bits (predict/bits/bit_trees.h),
// and their walk over a table. About 0.3 ns a tree and row, and 2 ns to number a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "bin/edges/lookup.h"
#include "predict/bits/bit_trees.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

struct BitForest {
  // The values of a feature as numbers: how many of its thresholds are below; or codes of levels.
  struct Values {
    std::size_t feature;
    bool of_levels;
    Lookup<std::uint16_t> lookup;
  };
  // A column of a group: which values it has, and the code for each of their numbers.
  struct Column {
    std::size_t values;
    std::vector<std::uint8_t> codes;
  };
  struct Group {
    std::vector<Column> columns;
    BitGroup trees;
  };
  static constexpr std::uint32_t missing_level = 255;

  std::vector<Values> values;
  std::vector<Group> groups;
  std::vector<std::uint32_t> leaf_nodes;  // nodes of their trees, by tree and number
  Buffer<std::uint8_t> packed;            // values of the leaves; none where they are wide
};

// Nothing where a tree has more than 256 leaves, or a feature more thresholds than 16 bits number.
// The forest must have been checked, as packing it for `traverse` does. Splits that differ in the
// side of missing values are one test for rows without such; they are told apart `with_missing`.
std::optional<BitForest> bit_forest(const Forest& forest, std::size_t n_columns, bool with_missing);

// Both, of which the second is asked for when a row has missing numbers.
struct BitForests {
  const BitForest& present;
  FunctionRef<const BitForest&()> with_missing;
};

// Adds to the scores of all rows what the trees say, in their order.
void traverse_bits(const Columns& table, const BitForests& bits, const Forest& forest,
                   std::size_t n_outputs, Team& team, double* scores);

// As `traverse_leaves`.
void bit_leaves(const Columns& table, const BitForests& bits, std::size_t n_trees, Team& team,
                FunctionRef<void(const LeafBlock&, int member)> consume);

}  // namespace arboost
