// Checks of a criterion: of parameters, once; of targets, one pass over the rows of each tree.
#include <algorithm>  // any_of
#include <cmath>      // ldexp
#include <cstdlib>    // abs
#include <stdexcept>

#include "grow/grower.h"

namespace arboost {

void Grower::check_criterion() const {
  const TreeParams& p = params_;
  if (p.random_cuts && p.candidates == Candidates::per_node)
    throw std::invalid_argument(
        "random thresholds are drawn between the values of a node: sketches for each node have no "
        "effect on them");
  if (p.criterion == Criterion::quadratic) return;
  const bool has_levels = std::any_of(codes_.is_category.begin(), codes_.is_category.end(),
                                      [](std::uint8_t is) { return is != 0; });
  if (p.reg_lambda != 0 || p.reg_alpha != 0 || p.max_delta_step != 0 ||
      (has_levels && p.cat_l2 != 0))
    throw std::invalid_argument(
        "reg_lambda, reg_alpha, max_delta_step and cat_l2 must be 0 for this criterion: only "
        "\"quadratic\" knows penalties");
  if (!p.monotone.empty())
    throw std::invalid_argument(
        "monotone constraints need the criterion \"quadratic\": drop them, or use squared_error or "
        "gini");
  if (p.criterion != Criterion::absolute_error) return;
  if (has_levels)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" splits numerical features only, but the table has "
        "categories: "
        "encode them as numbers, or use squared_error");
  if (p.candidates == Candidates::per_node)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" tries all values of a node: sketches for each node have "
        "no effect on it");
}

// Class shares and counts must be nonnegative.
void Grower::check_targets() const {
  if (params_.criterion != Criterion::entropy && params_.criterion != Criterion::poisson) return;
  const TreePairs& pairs = rows_.pairs();
  if (params_.criterion == Criterion::entropy && width_ == 1) {
    const double h_per_g = std::ldexp(1.0, pairs.g_exponent - pairs.h_exponent);
    for (std::size_t i = 0; i < rows_.rows().n; ++i) {
      const FixedPair& pair = pairs.at(i, 0);
      if (std::abs(static_cast<double>(pair.g)) > (pair.h + 1.0) * h_per_g + 1)
        throw std::invalid_argument(
            "a target is beyond -1 and 1, but the criterion \"entropy\" of one output needs them "
            "for its two classes: give every class an output of its own");
    }
    return;
  }
  for (std::size_t i = 0; i < rows_.rows().n; ++i)
    for (std::size_t k = 0; k < width_; ++k)
      if (pairs.at(i, k).g > 0)
        throw std::invalid_argument(
            "a target is below 0, but the criteria \"entropy\" and \"poisson\" need targets from 0 "
            "on: use squared_error");
}

}  // namespace arboost
