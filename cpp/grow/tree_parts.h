// Targets of heavy tails -> a tree that is grown in parts, each with gradients at the scale of its
// rows.
//
// One integer unit serves a tree as long as the spread of typical values is many units. Where the
// largest value is millions of times as far from the middle as typical ones are, a part first
// separates values of different magnitude: it splits a node until its values differ by less than
// `tolerance` units. The rows of such a node are the next part, with a unit of their own.
//
//   values  1 2 1 3 9e8 2 7 1      first part     1 2 1 | 9e8 | 3 2 7 1       unit: about 1
//                                  other parts    1 1 | 2   ...  3 2 | 7 ..   units: about 1e-8
//
// A node draws the same features and thresholds as in a tree that is grown at once. Scales follow
// from the sorted values of a part, and sums are integers, so the order of the rows does not count.
#pragma once

#include <cstddef>
#include <span>

#include "base/parallel.h"
#include "grow/grower.h"
#include "grow/policy/leaf_target.h"
#include "grow/trees/grown_trees.h"
#include "loss/apply.h"

namespace arboost {

// True if one unit for all rows is too coarse for the typical spread of some output.
bool needs_parts(std::span<const double> y, std::size_t width, const TreeParams& params);

// Appends one tree to the forest, whose values are to be set (grow/means.h). `gradients` are memory
// for the pairs of all training rows. Not for rows on a device, nor for monotone constraints.
void grow_in_parts(Grower& grower, const LeafTarget& target, const TreeRequest& request,
                   Gradients& gradients, GrownTrees& forest, Team& team);

}  // namespace arboost
