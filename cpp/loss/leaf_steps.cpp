#include "loss/leaf_steps.h"

#include <algorithm>
#include <cmath>

#include "loss/elementary.h"

namespace arboost {
namespace {

constexpr double largest_step = 10;

double limited(double step) {
  return std::isnan(step) ? 0 : std::clamp(step, -largest_step, largest_step);
}

// log(above / below) of sums that are negative only by the rounding of gradients.
double log_ratio(double above, double below) {
  double logs[] = {std::max(above, 0.0), std::max(below, 0.0)};
  logarithms(logs, 2);
  return limited(logs[0] - logs[1]);
}

double leaf_step(const LossSpec& spec, double outputs, double g, double h) {
  switch (spec.loss) {
    case Loss::poisson:  // log(sum w y / sum w e^F)
      return log_ratio(h - g, h);
    case Loss::gamma:  // log(sum w y e^-F / sum w)
      return log_ratio(h, h + g);
    case Loss::tweedie: {  // log(sum w y e^((1-p) F) / sum w e^((2-p) F))
      const double power = spec.parameters[0];
      return log_ratio(h - (2 - power) * g, h + (power - 1) * g);
    }
    case Loss::logistic:
    case Loss::exponential:
      return limited(-g / h);
    case Loss::softmax:
      // The hessians of training are 2 p (1 - p), an upper bound of the full hessian matrix.
      return (outputs - 1) / outputs * limited(-g / (h / 2));
    default:
      return h > 0 ? -g / h : 0;
  }
}

}  // namespace

void leaf_steps(const LossSpec& spec, std::size_t outputs, const double* sums_g,
                const double* sums_h, std::size_t n, double* steps) {
  for (std::size_t i = 0; i < n; ++i)
    steps[i] = leaf_step(spec, static_cast<double>(outputs), sums_g[i], sums_h[i]);
}

}  // namespace arboost
