// Trees and a table -> scores or leaves, by packed nodes of 16 bytes and walks over values. No
// preparation of the rows is needed, so this form serves single rows, and forests that no other
// form supports. Parallel over blocks of rows.
#pragma once

#include <bit>  // bit_cast
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"
#include "tree/rule.h"  // CodeSet

namespace arboost {

// A split by a set reads the row's value as a level code; values other than the integers 0 to 254
// are missing.
//
// scores[row][output] += the values of the trees in the range, in the order of the trees: the
// result depends neither on the team nor on the blocks. Throws std::invalid_argument where a tree
// leads outside its nodes, the table or the scores.
void traverse(const Columns& table, const Forest& forest, TreeRange trees, std::size_t n_outputs,
              Team& team, double* scores);

// Leaves that rows reach in the first trees: `consume` gets those of a few rows at a time, in any
// order and from all members of the team.
void traverse_leaves(const Columns& table, const Forest& forest, std::size_t n_trees, Team& team,
                     FunctionRef<void(const LeafBlock&, int member)> consume);

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

// The next node of a row. Where neither values are missing nor splits are by sets, that takes fewer
// steps.
template <bool with_missing, bool with_sets>
inline std::uint32_t step(const Node node, const CodeSet* sets, const double* row) {
  const double x = row[node.column & column_bits];
  std::uint32_t right = x > node.threshold;
  if constexpr (with_missing) right |= (x != x) & (node.column >> 31);
  if constexpr (with_sets)
    if (node.column & by_set)
      right =
          !holds(sets[std::bit_cast<std::uint64_t>(node.threshold)], static_cast<std::uint32_t>(x));
  return node.next + right;
}

// Columns that splits look at: the values of a feature, or for splits by sets its level codes.
struct UsedColumn {
  std::size_t feature;
  bool of_codes;
};
class UsedColumns {
 public:
  static constexpr std::uint32_t unused = column_bits;

  explicit UsedColumns(std::size_t n_features)
      : n_features_(n_features), number_(2 * n_features, unused) {}
  bool has(std::size_t feature, bool of_codes) const {
    return number_[of_codes ? n_features_ + feature : feature] != unused;
  }
  // The number of a column, a new one at its first use.
  std::uint32_t number(std::size_t feature, bool of_codes) {
    std::uint32_t& known = number_[of_codes ? n_features_ + feature : feature];
    if (known == unused) {
      known = static_cast<std::uint32_t>(columns.size());
      columns.push_back({feature, of_codes});
    }
    return known;
  }

  std::vector<UsedColumn> columns;

 private:
  std::size_t n_features_;
  std::vector<std::uint32_t> number_;
};
// Rows [begin, end) of these columns: value i of column c at values[c * next_column + i *
// next_row].
void read_columns(const Columns& table, std::span<const UsedColumn> columns, std::size_t begin,
                  std::size_t end, double* values, std::size_t next_column, std::size_t next_row);

struct Tree {
  std::size_t first;        // in the packed nodes
  std::size_t first_value;  // in the forest's nodes
  int depth;
  std::uint32_t output;
};

struct Packed {
  std::vector<Node> nodes;
  std::vector<Tree> trees;
  std::vector<CodeSet> sets;        // with a bit for the missing code
  std::vector<UsedColumn> columns;  // of a block
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
