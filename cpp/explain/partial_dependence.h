// Partial dependence: trees and a grid of one or two features -> scores at the points of the grid.
#pragma once

#include <cstddef>
#include <span>

#include "base/parallel.h"
#include "explain/regions.h"
#include "table/columns.h"

namespace arboost {

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
