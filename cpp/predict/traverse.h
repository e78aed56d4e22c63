// Trees and a table -> scores or leaves. Parallel over blocks of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// A split by a set reads the row's value as a level code; values other than the integers 0 to 254
// are missing.
//
// scores[row][output] += the values of the trees in the range, in the order of the trees: the
// result depends neither on the team nor on the blocks. Throws std::invalid_argument where a tree
// leads outside its nodes, the table or the scores.
void traverse(const Columns& table, const Forest& forest, TreeRange trees, std::size_t n_outputs,
              Team& team, double* scores);

// Leaves that rows reach in the first trees: `consume` gets those of a few rows at a time, in any
// order and from all members of the team.
void traverse_leaves(const Columns& table, const Forest& forest, std::size_t n_trees, Team& team,
                     FunctionRef<void(const LeafBlock&, int member)> consume);

}  // namespace arboost
