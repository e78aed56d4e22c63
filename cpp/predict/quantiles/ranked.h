// Medians of trees for many rows: leaves are ranked once, and rows are sorted by ranks.
#pragma once

#include <span>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// As `traverse_median`, whose checks of the weights and of the width it leaves to its caller.
void ranked_median(const Columns& table, const Forest& forest, std::span<const double> weights,
                   Team& team, double* scores);

}  // namespace arboost
