// Newton's method on the Legendre polynomials. O(n^2) for n points.
#include "explain/shap/shap_quadrature.h"

#include <algorithm>
#include <cmath>  // abs, ceil and sqrt, which are exact everywhere

namespace arboost {
namespace {

// From 0 to pi / 2, to 1e-7: where Newton starts.
double rough_cosine(double x) {
  const double s = x * x;
  return 1 - s / 2 * (1 - s / 12 * (1 - s / 30 * (1 - s / 56 * (1 - s / 90 * (1 - s / 132)))));
}

struct Legendre {
  double value, slope;
};

Legendre legendre(std::size_t n, double x) {
  double before = 1, value = x;
  for (std::size_t k = 2; k <= n; ++k) {
    const auto degree = static_cast<double>(k);
    const double next = ((2 * degree - 1) * x * value - (degree - 1) * before) / degree;
    before = value;
    value = next;
  }
  const auto degree = static_cast<double>(n);
  return {value, degree * (x * value - before) / (x * x - 1)};
}

}  // namespace

Quadrature gauss_legendre(std::size_t n) {
  constexpr double pi = 3.141592653589793;
  constexpr int steps = 8;  // each doubles the digits
  Quadrature rule{std::vector<double>(n, 0.5), std::vector<double>(n, 1.0)};
  if (n < 2) return rule;
  for (std::size_t i = 0; i < (n + 1) / 2; ++i) {
    const double angle = pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(n) + 0.5);
    double x = rough_cosine(angle);
    for (int step = 0; step < steps; ++step) {
      const Legendre at = legendre(n, x);
      x -= at.value / at.slope;
    }
    if (2 * i + 1 == n) x = 0;
    const double slope = legendre(n, x).slope;
    const double weight = 1 / ((1 - x * x) * slope * slope);
    rule.points[i] = (1 - x) / 2;
    rule.points[n - 1 - i] = (1 + x) / 2;
    rule.weights[i] = rule.weights[n - 1 - i] = weight;
  }
  return rule;
}

std::size_t points_for(std::size_t n_factors) {
  const std::size_t exact = (n_factors + 1) / 2 + (n_factors == 0 ? 1 : 0);
  const double root = std::sqrt(static_cast<double>(n_factors));
  return std::min(exact, static_cast<std::size_t>(std::ceil(5 * root)) + 8);
}

}  // namespace arboost
