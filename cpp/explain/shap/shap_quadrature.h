// Gauss and Legendre's points and weights on [0, 1]: n of them integrate polynomials of a degree
// below 2 n without an error.
#pragma once

#include <cstddef>
#include <vector>

namespace arboost {

struct Quadrature {
  std::vector<double> points, weights;
};

// The same bits on every machine: nothing but + - * / is used.
Quadrature gauss_legendre(std::size_t n);

// Points that integrate a product of n_factors linear functions with values from 0 to 1. Up to
// about a hundred factors they do so without an error. Products of more are like bells whose width
// falls with the square root of n_factors; what points a third of that apart miss is below 1e-15.
std::size_t points_for(std::size_t n_factors);

}  // namespace arboost
