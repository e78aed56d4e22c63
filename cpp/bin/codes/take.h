// Some rows of a binned table -> a table of their own. Every tree walks the validation rows, which
// are fastest to read when contiguous.
#pragma once

#include "base/parallel.h"
#include "table/codes.h"
#include "tree/tree_rows.h"

namespace arboost {

// Copies the rows, by number, in both orders.
Codes take_rows(const Codes& from, const TreeRows& rows, Team& team);

}  // namespace arboost
