// AdaBoost's distributions over the rows: margins or losses of the current ensemble -> row weights
// of the next learner.
//
// A distribution has one double a row. A first pass computes e^-margin chunk by chunk, relative to
// the chunk's lowest margin, so that nothing overflows; a second pass scales the chunks to one
// unit. The same bits for any number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "base/parallel.h"
#include "loss/losses.h"

namespace arboost {

// Result of weighting some rows by e^-margin, in units of the largest exponential among them.
struct Weighed {
  double highest;  // the largest -margin of rows of nonzero weight; -infinity: no such row
  double sum;      // of the new weights
};

// Exponential loss of some scores, and their weighted error.
struct ScoresOfClasses {
  double log_loss, error;
};

// out = s e^-m with mean 1, where s are the weights and m = (2 y - 1) F for one output, F_y for one
// output a class (Freund and Schapire 1997, "A decision-theoretic generalization of on-line
// learning", section 4; Zhu et al. 2009, "Multi-class AdaBoost"). A row's class is 1 where F > 0,
// or that of the first highest score. Throws std::invalid_argument if a score or weight is not
// finite, y is not a class, or all weights are 0.
ScoresOfClasses class_distribution(const LossRows& rows, double* out, Team& team);

// Weighted error: the share of the distribution, rows.weight, on rows that the votes, rows.scores,
// misclassify.
double weighted_error(const LossRows& rows, Team& team);

// Targets and predictions of one learner, under a distribution of any sum.
struct PredictedRows {
  const double* y;
  const double* prediction;
  std::span<const double> distribution;

  std::size_t n_rows() const { return distribution.size(); }
};

// Losses in [0, 1] of d = |y - prediction| / the largest of these (Drucker 1997, "Improving
// regressors using boosting techniques").
enum class R2Loss {
  linear,       // d
  square,       // d^2
  exponential,  // 1 - e^-d
};

// out = the losses; returns their mean under the distribution. Rows of zero weight are ignored for
// the largest error, and have d clipped to 1. Where all errors are 0, so are the losses. Throws
// std::invalid_argument for errors or distributions that are not finite.
double r2_losses(const PredictedRows& rows, R2Loss loss, double* out, Team& team);

// distribution *= e^(log_factor (1 - loss)), then scaled to sum 1: with log_factor = rate * log
// beta, Drucker's step for losses from 0 to 1. Throws std::invalid_argument, and leaves the
// distribution alone, where log_factor is beyond +-300 or a number is not allowed.
void r2_reweight(const double* losses, double log_factor, std::span<double> distribution,
                 Team& team);

// Kernels, which isa/ fills for each instruction set. All variants give the same bits.
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
