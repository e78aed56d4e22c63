// Partial dependence: trees and a grid of one or two features -> scores at the points of the grid.
//
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

#include "base/parallel.h"
#include "predict/traverse.h"
#include "table/columns.h"

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
  // Nodes are those of predict/traverse.h. A split that divides the grid is its own child like a
  // leaf, and tests the last column of a row, too. Splits that send the whole grid to one side test
  // it as well, and lead to that side.
  static constexpr std::uint32_t is_plain = 1u << 31;  // of leaves: the whole grid leads there
  static constexpr std::int32_t nowhere = -1;          // region of nodes that the grid misses

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
  std::vector<CodeSet> sets;        // with a bit for the missing code
  std::vector<UsedColumn> columns;  // that splits off the grid look at
};

// out[row - begin][point][output]: the sum of the trees for rows [begin, end) of the table, with
// the values of each point in place of their own. The result of a row does not depend on other
// rows.
//
// Cost: one walk a row and tree that takes both sides of splits on the grid, not one walk for each
// point. Parallel over blocks of rows.
void partial_of_rows(const Columns& table, std::size_t begin, std::size_t end,
                     const GridForest& grid_forest, std::size_t n_outputs, Team& team, double* out);

// out[point][output]: the same without rows, with both sides of splits on other features weighted
// by cover (Friedman 2001, section 8.2). Cost: a few ns a node.
void partial_of_trees(const GridForest& grid_forest, std::span<const double> cover,
                      std::size_t n_outputs, double* out);

}  // namespace arboost
