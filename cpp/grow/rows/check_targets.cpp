// Targets of a criterion: one pass over the rows of each tree.
#include <cmath>    // ldexp
#include <cstdlib>  // abs
#include <stdexcept>

#include "grow/rows/row_partition.h"

namespace arboost {

void check_targets(Criterion criterion, const TreePairs& pairs, std::size_t n) {
  if (criterion == Criterion::quadratic || criterion == Criterion::absolute_error) return;
  const std::size_t width = pairs.sum_h.size();
  if (criterion != Criterion::poisson && width == 1) {
    const double h_per_g = std::ldexp(1.0, pairs.g_exponent - pairs.h_exponent);
    for (std::size_t i = 0; i < n; ++i) {
      const FixedPair& pair = pairs.at(i, 0);
      if (std::abs(static_cast<double>(pair.g)) > (pair.h + 1.0) * h_per_g + 1)
        throw std::invalid_argument(
            "a target is beyond -1 and 1, but criteria of classes in one output need them for two "
            "classes: give every class an output of its own");
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < width; ++k)
      if (pairs.at(i, k).g > 0)
        throw std::invalid_argument(
            "a target is below 0, but \"poisson\" and criteria of classes need targets from 0 on: "
            "use "
            "squared_error");
}

}  // namespace arboost
