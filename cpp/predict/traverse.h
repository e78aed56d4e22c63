// Trees and a table -> scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// A split by a set takes what a row has in its column for the code of a level; values that are no
// integers from 0 to 254 are missing.
//
// scores[row][output] += what the trees of the range say, tree by tree in their order: the result
// depends neither on the team nor on how the rows are cut into blocks.
// Throws std::invalid_argument where a tree leads outside its nodes, the table or the scores.
void traverse(const Columns& table, const Forest& forest, TreeRange trees, std::size_t n_outputs,
              Team& team, double* scores);

// Leaves that rows reach in the first trees: `consume` gets those of a few rows at a time, in any
// order and from all members of the team.
void traverse_leaves(const Columns& table, const Forest& forest, std::size_t n_trees, Team& team,
                     FunctionRef<void(const LeafBlock&, int member)> consume);

}  // namespace arboost
