// Trees and a grid of one or two features -> what the trees say where these features have the
// values of the grid.
#pragma once

#include <cstddef>
#include <span>

#include "base/parallel.h"
#include "explain/regions.h"
#include "table/columns.h"

namespace arboost {

// out[row - begin][point][output]: the sum of the trees for rows [begin, end) of the table, with
// the values of each point in place of their own. Each row's numbers depend on nothing but the row.
//
// Cost: rows walk a tree once, and those that meet a split on the grid walk both sides below it;
// not once for each point. Blocks of rows run in parallel.
void partial_of_rows(const Columns& table, std::size_t begin, std::size_t end,
                     const GridForest& grid_forest, std::size_t n_outputs, Team& team, double* out);

// out[point][output]: the same without rows. Splits on features that are not in the grid send to
// either side what the cover says (Friedman 2001, section 8.2). Cost: a few ns a node.
void partial_of_trees(const GridForest& grid_forest, std::span<const double> cover,
                      std::size_t n_outputs, double* out);

}  // namespace arboost
