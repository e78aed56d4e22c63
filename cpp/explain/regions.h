// A forest and a grid of one or two features -> nodes for walks, with the region of the grid that
// reaches each node.
//
// Splits on the features of the grid divide it between their sides. The part of the grid that
// reaches a node, its region, is the same for every row that reaches it, so regions belong to
// nodes:
//
//   x0 <= 3 ?          grid of x0: 1 2 3 4 5      left child: 1 2 3    right child: 4 5
//     x1 <= 7 ?        another feature: both children have the region of their parent
//
// A region is the product of a part of the first axis and a part of the second. A part is a list of
// runs of neighbouring points: one run for sorted numbers, more for sets of levels.
//
// Cost: 10 ns a node, and one comparison for each split on the grid and each point of its axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tree/forest.h"
#include "tree/rule.h"  // CodeSet

namespace arboost {

// Grid values of a feature: NaN is missing; categorical values are level codes.
struct Axis {
  std::size_t feature;
  std::span<const double> values;
};
using Grid = std::span<const Axis>;  // one or two; the points of the last one are neighbours

struct Run {
  std::uint32_t begin, end;
};

// A part of an axis: its runs, or all of it.
struct Part {
  std::uint32_t begin = 0, end = 0;  // in the list of runs
  bool is_all = true;
};
struct Region {
  Part part[2];
};

class GridForest {
 public:
  // A leaf is its own child, and so is a split that divides the grid: it tests the last column of a
  // row, which is -infinity and never above a threshold. Splits that send the whole grid to one
  // side test it, too, and lead to that side. The threshold of a leaf holds its value if leaves
  // have one number.
  struct Node {
    double threshold;
    std::uint32_t next;    // left child; the right one follows it
    std::uint32_t column;  // among those of `columns`, and the flags below
  };
  static constexpr std::uint32_t missing_right = 1u << 31;
  static constexpr std::uint32_t by_set = 1u << 30;    // the threshold's bits are a set's number
  static constexpr std::uint32_t is_plain = 1u << 31;  // of leaves: the whole grid leads there
  static constexpr std::uint32_t column_bits = by_set - 1;
  static constexpr std::int32_t nowhere = -1;  // region of nodes that the grid misses

  struct Column {
    std::size_t feature;
    bool of_codes;
  };

  // Throws std::invalid_argument where a tree leads outside its nodes, the columns or the outputs.
  GridForest(const Forest& trees, Grid axes, std::size_t n_columns, std::size_t n_outputs);

  std::size_t n_points(std::size_t axis) const {
    return axis < grid.size() ? grid[axis].values.size() : 1;
  }
  std::size_t n_points() const { return n_points(0) * n_points(1); }
  bool has_sets() const { return !sets.empty(); }

  Forest forest;
  Grid grid;
  std::vector<Node> nodes;           // those of the forest
  std::vector<int> depth;            // of each tree: steps from the root to where rows stop
  std::vector<std::int32_t> region;  // of each node
  std::vector<Region> regions;       // the first is the whole grid
  std::vector<Run> runs;
  std::vector<CodeSet> sets;    // with a bit for the missing code
  std::vector<Column> columns;  // that splits off the grid look at
};

}  // namespace arboost
