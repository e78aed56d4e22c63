// Operations that round the same way on all machines only. About 10 ns a number; not threaded.
#include "loss/elementary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "loss/far_exponents.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t block_size = 256;
using Limits = std::numeric_limits<double>;

void exponentials_of_block(double* numbers, std::size_t n) {
  bool far = false;
  for (std::size_t i = 0; i < n; ++i) far |= is_far_exponent(numbers[i]);
  if (!far) return loss_kernels().exponentials(numbers, n);
  double half[block_size];
  for (std::size_t i = 0; i < n; ++i) half[i] = half_of_exponent(numbers[i]);
  loss_kernels().exponentials(half, n);
  for (std::size_t i = 0; i < n; ++i) half[i] *= half[i];
  for (std::size_t i = 0; i < n; ++i)
    if (is_far_exponent(numbers[i]))
      numbers[i] = half[i];
    else
      loss_kernels().exponentials(numbers + i, 1);
}

// An unevaluated sum, |low| at most half a unit in the last place of `high`.
struct Pair {
  double high, low;
};

// a + b without error (Knuth).
Pair sum_of(double a, double b) {
  const double sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// a * b without error (Dekker), for |a| and |b| far from overflow.
Pair product_of(double a, double b) {
  constexpr double split = 134217729.0;  // 2^27 + 1
  const double a_high = a * split - (a * split - a), a_low = a - a_high;
  const double b_high = b * split - (b * split - b), b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// Sum of s^(2 i) / (2 i + 1) for i = 1 ..., of q = s^2 up to 0.0295.
double atanh_tail(double q) {
  double series = 1.0 / 23;
  for (int odd = 21; odd >= 3; odd -= 2) series = series * q + 1.0 / odd;
  return series * q;
}

// log(x + low) for an ordinary x > 0: x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m =
// 2 atanh(s) = 2 s + 2 s (s^2 / 3 + ...) with s = (m - 1) / (m + 1). The leading terms k log 2 and
// 2 s are pairs, so that the error before the last rounding is some hundredths of a unit.
double log_of_sum(double x, double low) {
  int k;
  double m = 2 * std::frexp(x, &k);
  --k;
  if (m > 1.4142135623730951) {
    m /= 2;
    ++k;
  }
  const double m_low = std::ldexp(low, -k);
  const double f = m - 1.0;  // exact
  const Pair d = sum_of(m, 1.0);
  const double s = f / d.high;
  const Pair back = product_of(s, d.high);
  const double s_low = (((f - back.high) - back.low) + (m_low - s * (d.low + m_low))) / d.high;
  // log 2 in two parts; the product of the first with k is exact.
  constexpr double log2_high = 6.93147180369123816490e-01, log2_low = 1.90821492927058770002e-10;
  const Pair leading = sum_of(k * log2_high, 2.0 * s);
  return leading.high +
         (leading.low + (k * log2_low + (2.0 * s_low + 2.0 * s * atanh_tail(s * s))));
}

double log_of_pair(double x, double low) {
  if (x > 0 && x <= Limits::max()) return log_of_sum(x, low);
  return x == 0 ? -Limits::infinity() : x < 0 ? Limits::quiet_NaN() : x;
}

}  // namespace

void exponentials(double* numbers, std::size_t n) {
  for (std::size_t i = 0; i < n; i += block_size)
    exponentials_of_block(numbers + i, std::min(block_size, n - i));
}

void logarithms(double* numbers, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) numbers[i] = log_of_pair(numbers[i], 0);
}

void logarithms_of_one_plus(double* numbers, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const Pair sum = sum_of(1.0, numbers[i]);
    numbers[i] = log_of_pair(sum.high, sum.low);
  }
}

}  // namespace arboost
