// Kernels of the losses: a table of functions that isa/ fills for each instruction set.
//
// All variants give the same bits: floating-point steps use only the correctly rounded operations
// + - * / without contraction, in one order.
#pragma once

#include <cstddef>

#include "loss/losses.h"

namespace arboost {

// A document of a query, and the n documents below it.
struct RankPairs {
  double score, exponential;   // of the document above; e^score up to a factor of the query
  const double* scores;        // of the documents below
  const double* exponentials;  //
  const double* weights;       // of the pairs; below 0 where the lower document is the better one
  double *g, *h;               // of the documents below: sums, which grow
  std::size_t n;
  bool divided;  // weights are divided by 0.01 + the difference of the scores
};

// Sums over pairs of the derivative by the score below, its size, and the second derivative.
struct PairSums {
  double slope, size, curve;
};

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

  PairSums (*rank_pairs)(const RankPairs& pairs);
};

const LossKernels& loss_kernels();

}  // namespace arboost
