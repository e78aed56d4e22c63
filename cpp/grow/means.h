// Means and medians over the rows of each node, as exact as doubles are.
#pragma once

#include <cstddef>
#include <span>

#include "grow/grower.h"
#include "grow/sample/sample.h"
#include "grow/trees/grown_trees.h"

namespace arboost {

// Gives the nodes of the last tree, which `grower` has just grown, the weighted means of y over
// their rows. y is [training row][width], weights are [training row] or empty for 1, and count
// beside those of the sample that the tree was grown on, if any. Trees that were grown on
// fixed-point gradients know these means only to about 2^-31 of the largest |y|, which is not
// enough for numbers of very different sizes. One pass over the rows, in their order, on one
// thread: the sums depend on nothing else.
void set_means(const Grower& grower, std::span<const double> y, std::span<const double> weight,
               const Sample* sample, GrownTrees& trees);

// The same with weighted medians: the value at which the weights, cumulated in the order of y, pass
// half of their sum; where they reach it exactly, the middle between that value and the next. Every
// level of the tree sorts its rows, on one thread.
void set_medians(const Grower& grower, std::span<const double> y, std::span<const double> weight,
                 const Sample* sample, GrownTrees& trees);

}  // namespace arboost
