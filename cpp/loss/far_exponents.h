// Exponents beyond the range of loss/functions.h: e^x as the square of e^(x / 2).
#pragma once

namespace arboost {
namespace {

inline bool is_far_exponent(double x) {
  return x > 708.0 || x < -708.0;
}
// Half of a far exponent, bounded: its square overflows or vanishes long before.
inline double half_of_exponent(double x) {
  const double half = x / 2;
  return half < -600.0 ? -600.0 : half > 600.0 ? 600.0 : half;
}

}  // namespace
}  // namespace arboost
