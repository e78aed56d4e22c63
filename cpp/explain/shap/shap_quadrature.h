// Gauss-Legendre quadrature on [0, 1]: n points integrate polynomials of degree below 2 n exactly.
#pragma once

#include <cstddef>
#include <vector>

namespace arboost {

struct Quadrature {
  std::vector<double> points, weights;
};

// The same bits on every machine: only + - * / are used.
Quadrature gauss_legendre(std::size_t n);

// Number of points for a product of n_factors linear functions with values in [0, 1]. Up to about a
// hundred factors, the integral is exact. Products of more factors are bell-shaped with a width
// that falls with the square root of n_factors; with points a third of that width apart, the error
// is below 1e-15.
std::size_t points_for(std::size_t n_factors);

}  // namespace arboost
