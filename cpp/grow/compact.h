// Some rows of a table as a table of their own. A small sample lies scattered over a large table,
// and a tree reads it many times: copied side by side once, it stays in the caches.
#pragma once

#include "kernels.h"
#include "parallel.h"
#include "types.h"

namespace arboost {

// Copies both layouts of the rows, by number, into `out`, whose memory is used again.
void copy_rows(const Codes& from, const TreeRows& rows, Codes& out, Team& team);

}  // namespace arboost
