// Kernels of the losses: a table of functions that isa/ fills for each instruction set.
//
// All variants give the same bits: floating-point steps use only the correctly rounded operations
// + - * / without contraction, in one order.
#pragma once

#include <cstddef>

#include "loss/losses.h"

namespace arboost {

struct LossKernels {
  // Computes the gradients of rows [begin, end) as fixed-point pairs, with their sums; or only
  // their bounds.
  void (*gradients)(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums);

  // The weighted loss of rows [begin, end), and the sum of their weights.
  LossValue (*loss_value)(const LossArgs& args, std::size_t begin, std::size_t end);

  // The sum of n weighted values, and the sum of their weights.
  LossValue (*weighted_sum)(const double* values, const double* weight, std::size_t n);

  // Replaces numbers x by e^x; the logarithm of a positive number. The same bits on every machine.
  void (*exponentials)(double* numbers, std::size_t n);
  double (*logarithm)(double x);
};

const LossKernels& loss_kernels();

}  // namespace arboost
