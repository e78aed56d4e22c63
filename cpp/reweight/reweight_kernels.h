// Kernels of reweighting: a table of functions that isa/ fills for each instruction set. All
// variants give the same bits.
#pragma once

#include <cstddef>

#include "loss/losses.h"
#include "reweight/reweight.h"

namespace arboost {

struct ReweightKernels {
  // The weight of the misclassified rows among [begin, end), as a loss, and of all rows; writes
  // margins[0 ...] unless null. NaN if a score is not finite, y is not a class or a weight is
  // negative.
  LossValue (*vote)(const LossRows& rows, std::size_t begin, std::size_t end, double* margins);

  // out[i] = weight[i] e^(lowest - margins[i]) for n rows, with the lowest margin of rows of
  // nonzero weight. Null weights are 1. `out` may alias the weights.
  Weighed (*weigh)(const double* margins, const double* weight, std::size_t n, double* out);
};

const ReweightKernels& reweight_kernels();

}  // namespace arboost
