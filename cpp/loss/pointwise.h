// Pointwise losses: value, gradient and hessian of one row and output.
//
// Included by loss/gradients.h and loss/value.h inside each instruction set's variant. Values are
// those of weight 1; gradients carry the weight.
#pragma once

#include "loss/functions.h"
#include "loss/loss_args.h"

namespace arboost::ARBOOST_ISA {
namespace {

struct GradientPair {
  double g, h;
};

struct SquaredError {
  GradientPair at(double y, double score, double w) const { return {w * (score - y), w}; }
  double value(double y, double score) const { return 0.5 * ((score - y) * (score - y)); }
};

// The hessian is 0 almost everywhere: the weight replaces it, and leaves are refitted.
struct AbsoluteError {
  GradientPair at(double y, double score, double w) const {
    const double sign = score > y ? 1.0 : (score < y ? -1.0 : 0.0);
    return {w * sign, w};
  }
  double value(double y, double score) const { return score > y ? score - y : y - score; }
};

struct Huber {
  double delta;
  GradientPair at(double y, double score, double w) const {
    double r = score - y;
    r = r > delta ? delta : r;
    r = r < -delta ? -delta : r;
    return {w * r, w};
  }
  double value(double y, double score) const {
    const double r = score > y ? score - y : y - score;
    return r <= delta ? 0.5 * (r * r) : delta * (r - 0.5 * delta);
  }
};

struct Quantile {
  double alpha;
  GradientPair at(double y, double score, double w) const {
    const double slope = score > y ? 1.0 - alpha : (score < y ? -alpha : 0.0);
    return {w * slope, w};
  }
  double value(double y, double score) const {
    return score > y ? (1.0 - alpha) * (score - y) : alpha * (y - score);
  }
};

struct Poisson {
  GradientPair at(double y, double score, double w) const {
    const double mean = growing_exp(score);
    return {w * (mean - y), w * mean};
  }
  double value(double y, double score) const {
    return growing_exp(score) - y + y * (log_of(y) - score);
  }
};

struct Gamma {
  GradientPair at(double y, double score, double w) const {
    const double ratio = y * growing_exp(-score);
    return {w * (1.0 - ratio), w * ratio};
  }
  double value(double y, double score) const {
    return y * growing_exp(-score) - 1.0 - (log_of(y) - score);
  }
};

struct Tweedie {
  double power;
  GradientPair at(double y, double score, double w) const {
    const double a = y * growing_exp((1.0 - power) * score);
    const double b = growing_exp((2.0 - power) * score);
    return {w * (b - a), w * ((power - 1.0) * a + (2.0 - power) * b)};
  }
  double value(double y, double score) const {
    const double saturated = y > 0 ? exp_of((2.0 - power) * log_of(y)) / (power - 1.0) : 0.0;
    const double a = y * growing_exp((1.0 - power) * score) / (power - 1.0);
    return a + (growing_exp((2.0 - power) * score) - saturated) / (2.0 - power);
  }
};

// With p = 1 / (1 + e^-score): g = p - y and h = p (1 - p).
struct Logistic {
  GradientPair at(double y, double score, double w) const {
    return at_exponential(y, exp_of(exponent(score)), w);
  }
  // In two steps, with the exponentials of many rows between them.
  double exponent(double score) const { return -score; }
  GradientPair at_exponential(double y, double e, double w) const {
    const double p = 1.0 / (1.0 + e);
    return {w * (p - y), w * (p * (1.0 - p))};
  }
  double value(double y, double score) const {
    const double size = score > 0 ? score : -score;
    const double above = score > 0 ? score : 0.0;
    return log1p_of(exp_of(-size)) + (above - y * score);
  }
};

struct Exponential {
  GradientPair at(double y, double score, double w) const {
    const double sign = 2.0 * y - 1.0;
    const double e = w * growing_exp(-sign * score);
    return {-sign * e, e};
  }
  double value(double y, double score) const { return growing_exp((1.0 - 2.0 * y) * score); }
};

// One output of K: squared error of the indicator of its class.
struct OneHot {
  double k;
  GradientPair at(double y, double score, double w) const {
    return {w * (score - (y == k ? 1.0 : 0.0)), w};
  }
  double value(double y, double score) const {
    const double r = score - (y == k ? 1.0 : 0.0);
    return 0.5 * (r * r);
  }
};

// Friedman's least-squares trees: the weight replaces the hessian.
template <class LossOfRow>
struct LeastSquares {
  LossOfRow loss;
  GradientPair at(double y, double score, double w) const { return {loss.at(y, score, w).g, w}; }
};

// Calls use(loss) with the loss of one output. Softmax and given gradients are not allowed.
template <class Use>
void with_loss(const LossArgs& args, std::size_t output, Use use) {
  switch (args.loss) {
    case Loss::squared_error:
      return use(SquaredError{});
    case Loss::absolute_error:
      return use(AbsoluteError{});
    case Loss::huber:
      return use(Huber{args.parameters[0]});
    case Loss::quantile:
      return use(Quantile{args.parameters[output]});
    case Loss::poisson:
      return use(Poisson{});
    case Loss::gamma:
      return use(Gamma{});
    case Loss::tweedie:
      return use(Tweedie{args.parameters[0]});
    case Loss::logistic:
      return use(Logistic{});
    case Loss::one_hot:
      return use(OneHot{static_cast<double>(output)});
    case Loss::exponential:
      return use(Exponential{});
    case Loss::softmax:
    case Loss::given:
      return;
  }
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
