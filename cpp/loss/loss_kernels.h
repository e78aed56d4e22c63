// The inner loops of losses: a table of functions, which isa/ fills for each instruction set.
//
// All variants give the same bits: floating-point steps use only the correctly rounded operations
// + - * / without contraction, in one order.
#pragma once

#include <cstddef>

#include "loss/losses.h"

namespace arboost {

struct LossKernels {
  // Gradients of rows [begin, end) -> fixed-point pairs and their sums; or only their bounds.
  void (*gradients)(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums);

  // The sum of the weighted losses of rows [begin, end), and of their weights.
  LossValue (*loss_value)(const LossArgs& args, std::size_t begin, std::size_t end);

  // The sum of n values times their weights, and that of the weights.
  LossValue (*weighted_sum)(const double* values, const double* weight, std::size_t n);

  // Numbers become their e^x; the logarithm of a number above 0. The same bits on every machine.
  void (*exponentials)(double* numbers, std::size_t n);
  double (*logarithm)(double x);
};

const LossKernels& loss_kernels();

}  // namespace arboost
