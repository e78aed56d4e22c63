// Checks of the parameters of a criterion.
#include <algorithm>  // any_of
#include <stdexcept>

#include "grow/policy/tree_policy.h"

namespace arboost {

void check_criterion(const TreeParams& p, const Codes& codes) {
  if (p.random_cuts && p.candidates == Candidates::per_node)
    throw std::invalid_argument(
        "random thresholds are drawn between the values of a node: sketches for each node have no "
        "effect on them");
  if (p.criterion == Criterion::quadratic) return;
  const bool has_levels = std::any_of(codes.is_category.begin(), codes.is_category.end(),
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

}  // namespace arboost
