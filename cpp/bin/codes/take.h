// Some rows of a table as a table of their own: validation rows, which every tree is walked by, are
// best read side by side.
#pragma once

#include "base/parallel.h"
#include "table/codes.h"
#include "tree/tree_rows.h"

namespace arboost {

// Both layouts of the rows, by number.
Codes take_rows(const Codes& from, const TreeRows& rows, Team& team);

}  // namespace arboost
