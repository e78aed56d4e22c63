// Rows and leaves of a tree -> means or medians of y in each node, in double precision.
#pragma once

#include "grow/grower.h"
#include "grow/policy/leaf_target.h"
#include "grow/sample/sample.h"
#include "grow/trees/grown_trees.h"

namespace arboost {

// Sets the values of the last tree, which `grower` has just grown on a sample or on all rows, to
// the weighted means of the target in each node; weights multiply those of the sample. With
// `sets_covers`, the covers become the sums of these weights. Fixed-point gradients resolve the
// means only to about 2^-31 of the largest |y|, too coarse for values of very different magnitudes.
// The rows of a leaf are added up in their order: the sums depend on nothing else. One pass over
// the rows on one thread, or on the device of the rows.
void set_means(Grower& grower, const LeafTarget& target, const Sample* sample, bool sets_covers,
               GrownTrees& trees);

// The same with weighted medians: the value at which the weights, cumulated in the order of y, pass
// half of their sum; where they reach it exactly, the middle between that value and the next. Each
// level of the tree sorts its rows; single-threaded. Not for rows on a device.
void set_medians(Grower& grower, const LeafTarget& target, const Sample* sample, bool sets_covers,
                 GrownTrees& trees);

}  // namespace arboost
