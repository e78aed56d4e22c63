// Weighted medians of trees for many rows: leaves are ranked once, and each row is sorted by ranks.
#pragma once

#include <span>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// As `traverse_median`, but the caller checks the weights and the width.
void ranked_median(const Columns& table, const Forest& forest, std::span<const double> weights,
                   Team& team, double* scores);

}  // namespace arboost
