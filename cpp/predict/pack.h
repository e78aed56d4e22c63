// Trees -> packed nodes of 16 bytes, and walks over values. No preparation of the rows is needed,
// so this form serves single rows, and forests that no other form supports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "predict/traverse.h"
#include "table/columns.h"
#include "tree/rule.h"  // CodeSet

namespace arboost {

// A packed node. A leaf is its own child: it tests an extra column of -infinity, never above a
// threshold. So the leaf's threshold can hold its value, and rows in a leaf can keep stepping with
// the others.
struct Node {
  double threshold;
  std::uint32_t next;    // left child; the right one follows it
  std::uint32_t column;  // of the block, and the two flags below
};
constexpr std::uint32_t missing_right = 1u << 31;  // missing values go right
constexpr std::uint32_t by_set = 1u << 30;         // the bits of the threshold are a set's number
constexpr std::uint32_t column_bits = by_set - 1;

struct Tree {
  std::size_t first;        // in the packed nodes
  std::size_t first_value;  // in the forest's nodes
  int depth;
  std::uint32_t output;
};

struct Packed {
  std::vector<Node> nodes;
  std::vector<Tree> trees;
  std::vector<CodeSet> sets;  // with a bit for the missing code
  struct Column {
    std::size_t feature;
    bool of_codes;  // for splits by sets
  };
  std::vector<Column> columns;  // of a block
};

// Throws std::invalid_argument where a tree leads outside its nodes, the columns or the outputs.
Packed pack_trees(const Forest& forest, TreeRange range, std::size_t n_columns,
                  std::size_t n_outputs);

// As `traverse` and `traverse_leaves`.
void walk_values(const Columns& table, const Packed& packed, const Forest& forest,
                 std::size_t n_outputs, Team& team, double* scores);
void walk_leaves(const Columns& table, const Packed& packed, std::size_t n_trees, Team& team,
                 FunctionRef<void(const LeafBlock&, int member)> consume);

// The same for one row: `row` has the values of the packed columns, level codes included, and one
// extra entry for the leaves' column. No allocation, no other thread.
void walk_row(const Packed& packed, const Forest& forest, std::size_t n_outputs, double* row,
              double* scores);

}  // namespace arboost
