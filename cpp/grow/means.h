// Rows and leaves of a tree -> means or medians of y in each node, in double precision.
#pragma once

#include <span>

#include "grow/grower.h"
#include "grow/sample/sample.h"
#include "grow/trees/grown_trees.h"

namespace arboost {

// Sets the values of the last tree, which `grower` has just grown, to the weighted means of y in
// each node. y is [training row][width], weights are [training row] or empty for 1, and multiply
// those of the tree's sample, if any. Fixed-point gradients resolve these means only to about 2^-31
// of the largest |y|, too coarse for values of very different magnitudes. One pass over the rows,
// in their order, on one thread: the sums depend on nothing else.
void set_means(const Grower& grower, std::span<const double> y, std::span<const double> weight,
               const Sample* sample, GrownTrees& trees);

// The same with weighted medians: the value at which the weights, cumulated in the order of y, pass
// half of their sum; where they reach it exactly, the middle between that value and the next. Each
// level of the tree sorts its rows; single-threaded.
void set_medians(const Grower& grower, std::span<const double> y, std::span<const double> weight,
                 const Sample* sample, GrownTrees& trees);

// Sets the covers of the last tree's nodes to the sums of these weights.
void set_covers(const Grower& grower, std::span<const double> weight, const Sample* sample,
                GrownTrees& trees);

}  // namespace arboost
