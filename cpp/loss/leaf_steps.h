// Sums of gradients and hessians of leaves -> steps that minimise the loss in each leaf.
#pragma once

#include <cstddef>

#include "loss/losses.h"

namespace arboost {

// The steps of Friedman (2001), sections 4.1 to 4.6, from the sums of n leaves; losses with a log
// link have exact minimisers, because the leaf's sums of w y and w e^F follow from G and H. Others
// take one step of Newton's method, 0 without rows. Steps on a logarithmic scale end at +-10:
// leaves of one class, or of counts that are all 0, have no finite minimiser.
void leaf_steps(const LossSpec& spec, std::size_t outputs, const double* sums_g,
                const double* sums_h, std::size_t n, double* steps);

}  // namespace arboost
