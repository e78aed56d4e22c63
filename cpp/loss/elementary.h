// e^x, log x and log(1 + x) of arrays, with the limits of IEEE 754. The same bits on every machine,
// unlike those of the C library and NumPy.
#pragma once

#include <cstddef>

namespace arboost {

// Replaces numbers x by e^x, to the last bit or two; infinite above 709.78.
void exponentials(double* numbers, std::size_t n);

// Replaces numbers x by log x, rounded to nearest in 99 of 100 cases; -inf for 0, NaN below.
void logarithms(double* numbers, std::size_t n);

// The same of 1 + x.
void logarithms_of_one_plus(double* numbers, std::size_t n);

}  // namespace arboost
