// Columns and edges -> codes.
#pragma once

#include <span>
#include <vector>

#include "parallel.h"
#include "table.h"
#include "types.h"

namespace arboost {

// Code of x = number of edges strictly below x; missing values have the code edges.size() + 1.
// Edges ascend, at most 65,534 a column.
Codes encode(const Columns& table, const Rows& rows,
             const std::vector<std::span<const double>>& edges, Team& team);

}  // namespace arboost
