// The inner loops of reweighting: a table of functions, which isa/ fills for each instruction set.
// All variants give the same bits.
#pragma once

#include <cstddef>

#include "loss/losses.h"
#include "reweight/reweight.h"

namespace arboost {

struct ReweightKernels {
  // The weight of rows [begin, end) whose class the scores miss, as a loss, and that of all; and
  // margins[0 ...] of the rows, unless null. NaN where a score is not finite, y is no class
  // or a weight is below 0.
  LossValue (*vote)(const LossRows& rows, std::size_t begin, std::size_t end, double* margins);

  // out[i] = weight[i] e^(highest - margins[i]) of n rows, where that of the lowest margin among
  // rows that weigh something is e^0. No weight: 1. `out` may be the weights.
  Weighed (*weigh)(const double* margins, const double* weight, std::size_t n, double* out);
};

const ReweightKernels& reweight_kernels();

}  // namespace arboost
