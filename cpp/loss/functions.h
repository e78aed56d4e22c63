// exp, log and rounding from + - * / alone: the same bits on every machine, in vectorised loops.
//
// Included by loss/pointwise.h inside each instruction set's variant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>  // memcpy as bit cast
#include <limits>

#include "base/types.h"  // ARBOOST_RESTRICT

namespace arboost::ARBOOST_ISA {
namespace {

inline std::int64_t bits_of(double x) {
  std::int64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double with_bits(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Adding 1.5 * 2^52 leaves the nearest integer to x (ties to even) in the low bits of the sum.
constexpr double rounding_shift = 6755399441055744.0;
inline std::int32_t round_to_int(double x) {
  return static_cast<std::int32_t>(bits_of(x + rounding_shift));
}

// log 2 in two parts: the first has so few bits that its product with an exponent is exact.
constexpr double log2_high = 6.93147180369123816490e-01;
constexpr double log2_low = 1.90821492927058770002e-10;

// Beyond this exponent, e^x comes close to overflow.
constexpr double largest_exponent = 708.0;

// e^x = e^rest * power: x = n log 2 + rest with |rest| <= log(2) / 2, and power = 2^n by its bits.
struct ExpFactors {
  double rest, power;
};
inline ExpFactors exp_factors(double x) {
  x = x < -largest_exponent ? -largest_exponent : x;
  x = x > largest_exponent ? largest_exponent : x;
  const double shifted = x * 1.4426950408889634 + rounding_shift;
  const double n = shifted - rounding_shift;
  const std::int64_t power = (bits_of(shifted) + 1023) << 52;
  return {(x - n * log2_high) - n * log2_low, with_bits(static_cast<std::uint64_t>(power))};
}

// e^r for small r, by its Taylor series.
inline double exp_series(double r) {
  double e = 1.0 / 479001600;
  e = e * r + 1.0 / 39916800;
  e = e * r + 1.0 / 3628800;
  e = e * r + 1.0 / 362880;
  e = e * r + 1.0 / 40320;
  e = e * r + 1.0 / 5040;
  e = e * r + 1.0 / 720;
  e = e * r + 1.0 / 120;
  e = e * r + 1.0 / 24;
  e = e * r + 1.0 / 6;
  e = e * r + 0.5;
  e = e * r + 1.0;
  e = e * r + 1.0;
  return e;
}

// e^x to the last bit or two; e^-708 and e^708 beyond those.
inline double exp_of(double x) {
  const ExpFactors factors = exp_factors(x);
  return exp_series(factors.rest) * factors.power;
}

// The same for n <= exp_block numbers, in place. Two loops: every step of the series waits for the
// one before, and the shorter the loop, the more numbers a processor has in work at a time.
constexpr std::size_t exp_block = 256;
inline void exponentials_in_place(double* ARBOOST_RESTRICT numbers, std::size_t n) {
  double rests[exp_block];
  for (std::size_t i = 0; i < n; ++i) {
    const ExpFactors factors = exp_factors(numbers[i]);
    rests[i] = factors.rest;
    numbers[i] = factors.power;
  }
  for (std::size_t i = 0; i < n; ++i) numbers[i] = exp_series(rests[i]) * numbers[i];
}

// The same for losses that grow like e^x: infinite on overflow, so that the overflow is detected.
inline double growing_exp(double x) {
  return x > largest_exponent ? std::numeric_limits<double>::infinity() : exp_of(x);
}

// log x to the last bit or two for finite x > 0; some finite number for 0; NaN for infinity and
// NaN. x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)) by its series.
inline double log_of(double x) {
  const bool tiny = x < 2.2250738585072014e-308;  // subnormal
  const double scaled = tiny ? x * 18014398509481984.0 : x;
  const std::uint64_t bits = static_cast<std::uint64_t>(bits_of(scaled));
  const std::uint64_t from_sqrt_half = 0x3ff0000000000000 - 0x3fe6a09e667f3bcd;
  const std::uint64_t field = (bits + from_sqrt_half) >> 52;  // k + 1023
  const double m = with_bits(bits - ((field - 1023) << 52));
  // An integer below 2^52 as the low bits of 2^52 + integer: AVX-2 has no other conversion.
  const double shift = tiny ? 4503599627370496.0 + 1023.0 + 54.0 : 4503599627370496.0 + 1023.0;
  const double k = with_bits(0x4330000000000000 | field) - shift;
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double series = 1.0 / 21;
  series = series * q + 1.0 / 19;
  series = series * q + 1.0 / 17;
  series = series * q + 1.0 / 15;
  series = series * q + 1.0 / 13;
  series = series * q + 1.0 / 11;
  series = series * q + 1.0 / 9;
  series = series * q + 1.0 / 7;
  series = series * q + 1.0 / 5;
  series = series * q + 1.0 / 3;
  const double log_m = 2.0 * s + 2.0 * s * (q * series);
  return k * log2_high + (k * log2_low + log_m) + (x - x);
}

// log(1 + x) for 0 <= x <= 1, with a first-order correction of the rounding of 1 + x.
inline double log1p_of(double x) {
  const double sum = 1.0 + x;
  return log_of(sum) + (x - (sum - 1.0)) / sum;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
