// How much each row counts next, from how well it has been predicted so far: AdaBoost's
// distributions.
//
// A distribution is a double for each row. It comes from margins in one pass, chunk by chunk: each
// takes its own lowest margin for the unit, so that nothing overflows, and a second pass brings the
// chunks to one scale. The same bits for any number of threads.
#pragma once

#include <cstddef>

#include "loss/losses.h"
#include "parallel.h"

namespace arboost {

// Rows that were weighed by their margins, in units of the heaviest exponential among them.
struct Weighed {
  double highest;  // the largest -margin of rows that weigh something; -infinity: none does
  double sum;      // of what the rows weigh now
};

// Exponential loss of some scores, and the weighted share of rows that they send to a wrong class.
struct ScoresOfClasses {
  double log_loss, error;
};

// out = s e^-m with mean 1, where s are the weights and m = (2 y - 1) F for one output, F_y for one
// output a class (Freund and Schapire 1997, "A decision-theoretic generalization of on-line
// learning", section 4; Zhu et al. 2009, "Multi-class AdaBoost"). A row's class is 1 where F > 0,
// or that of the first highest score. Throws std::invalid_argument where scores or weights are not
// finite, y is no class, or no row weighs anything.
ScoresOfClasses class_distribution(const LossRows& rows, double* out, Team& team);

// The share of the distribution, rows.weight, on rows whose class the votes, rows.scores, miss.
double weighted_error(const LossRows& rows, Team& team);

}  // namespace arboost
