// Leaves of rows that are divided among workers: each walks its own, and all get the leaves of all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "grow/trees/grown_trees.h"
#include "table/shared_codes.h"

namespace arboost {

// The leaves of all rows, by the workers' own leaves in a tree of n_nodes nodes, in the order of
// the workers. One, two or four bytes a row are sent.
std::vector<std::uint32_t> gather_leaves(std::span<const std::uint32_t> local_leaves,
                                         std::size_t n_nodes, Collective& workers);

// The leaves of some rows of the table, ascending, or of all for an empty span.
std::vector<std::uint32_t> shared_leaves(const GrownTrees& trees, std::size_t tree,
                                         const SharedCodes& codes, std::span<const RowId> rows,
                                         Team& team);

// Replaces the scores of rows [begin, end), this worker's, and of all others by those of the
// workers that have them.
void gather_scores(std::size_t begin, std::size_t end, std::size_t outputs, double* scores,
                   Collective& workers);

}  // namespace arboost
