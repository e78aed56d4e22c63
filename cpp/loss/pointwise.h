// Scores -> gradients and hessians -> fixed-point pairs, in one vectorised pass. About 1 ns a row.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include <cstring>  // memcpy as bit cast

#include "kernels.h"
#include "loss/losses.h"

namespace arboost::ARBOOST_ISA {
namespace {

inline std::int64_t bits_of(double x) {
  std::int64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Adding 1.5 * 2^52 leaves the nearest integer to x (ties to even) in the low bits of the sum.
constexpr double rounding_shift = 6755399441055744.0;
inline std::int32_t round_to_int(double x) {
  return static_cast<std::int32_t>(bits_of(x + rounding_shift));
}

// e^x to the last bit or two, from + and * alone: the same bits on every machine, and loops over it
// vectorise. x = n log 2 + r with |r| <= log(2) / 2; e^r by its Taylor series; 2^n by its bits.
inline double exp_of(double x) {
  x = x < -708.0 ? -708.0 : x;
  x = x > 708.0 ? 708.0 : x;
  const double shifted = x * 1.4426950408889634 + rounding_shift;
  const double n = shifted - rounding_shift;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
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
  const std::int64_t power = (bits_of(shifted) + 1023) << 52;
  double scale;
  std::memcpy(&scale, &power, sizeof scale);
  return e * scale;
}

struct GradientPair {
  double g, h;
};

// Squared error: g = w (score - y), h = w.
struct SquaredError {
  static GradientPair at(double y, double score, double w) { return {w * (score - y), w}; }
};

// Log loss of two classes: with p = 1 / (1 + e^-score), g = w (p - y) and h = w p (1 - p).
struct Logistic {
  static GradientPair at(double y, double score, double w) {
    const double p = 1.0 / (1.0 + exp_of(-score));
    return {w * (p - y), w * (p * (1.0 - p))};
  }
};

// Gradients as given: g and h take the places of y and the weight.
struct Given {
  static GradientPair at(double g, double, double h) { return {g, h}; }
};

// Finds bounds, or writes pairs, for rows whose gradients pair_at(i) gives.
template <class PairAt>
void reduce(const LossArgs& args, std::size_t begin, std::size_t end, std::size_t output,
            PairAt pair_at, LossSums& sums) {
  if (args.pairs == nullptr) {
    std::int64_t max_g = 0, max_h = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const GradientPair pair = pair_at(i);
      const std::int64_t g = bits_of(pair.g) & 0x7fffffffffffffff;
      const std::int64_t h = bits_of(pair.h);
      max_g = g > max_g ? g : max_g;
      max_h = h > max_h ? h : max_h;
    }
    sums.max_g_bits = max_g > sums.max_g_bits ? max_g : sums.max_g_bits;
    sums.max_h_bits = max_h > sums.max_h_bits ? max_h : sums.max_h_bits;
    return;
  }
  FixedPair* pairs = args.pairs + output * args.output_stride;
  std::int64_t abs_g = 0, sum_h = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const GradientPair pair = pair_at(i);
    const std::int32_t g = round_to_int(pair.g * args.g_scale);
    const std::int32_t h = round_to_int(pair.h * args.h_scale);
    pairs[i * args.row_stride] = {g, h};
    abs_g += g < 0 ? -g : g;
    sum_h += h;
  }
  sums.abs_g[output] += abs_g;
  sums.h[output] += sum_h;
}

template <class LossOfRow>
void one_output(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  const double* y = args.y;
  const double* scores = args.scores;
  const double* weight = args.weight;
  if (weight == nullptr)
    reduce(
        args, begin, end, 0, [=](std::size_t i) { return LossOfRow::at(y[i], scores[i], 1.0); },
        sums);
  else
    reduce(
        args, begin, end, 0,
        [=](std::size_t i) { return LossOfRow::at(y[i], scores[i], weight[i]); }, sums);
}

// Gradients as arrays [n_rows][outputs]; scores are not looked at.
void given(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  for (std::size_t k = 0; k < args.outputs; ++k)
    reduce(
        args, begin, end, k,
        [=](std::size_t i) {
          const std::size_t at = i * args.outputs + k;
          return Given::at(args.y[at], 0.0, args.weight[at]);
        },
        sums);
}

// Log loss of K classes: with p_k = e^score_k / sum_j e^score_j, g_k = w (p_k - [y = k]) and
// h_k = 2 w p_k (1 - p_k), the diagonal bound that XGBoost uses. Blocks of rows, class by class.
void softmax(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  constexpr std::size_t block = 128;
  const std::size_t outputs = args.outputs;
  std::vector<double> exps(outputs * block);
  double highest[block], total[block];
  for (std::size_t first = begin; first < end; first += block) {
    const std::size_t n = end - first < block ? end - first : block;
    const double* scores = args.scores + first * outputs;
    for (std::size_t i = 0; i < n; ++i) highest[i] = scores[i * outputs];
    for (std::size_t k = 1; k < outputs; ++k)
      for (std::size_t i = 0; i < n; ++i) {
        const double score = scores[i * outputs + k];
        highest[i] = score > highest[i] ? score : highest[i];
      }
    for (std::size_t i = 0; i < n; ++i) total[i] = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      double* e = exps.data() + k * block;
      for (std::size_t i = 0; i < n; ++i) {
        e[i] = exp_of(scores[i * outputs + k] - highest[i]);
        total[i] += e[i];
      }
    }
    for (std::size_t k = 0; k < outputs; ++k) {
      const double* e = exps.data() + k * block;
      reduce(
          args, first, first + n, k,
          [&](std::size_t row) {
            const std::size_t i = row - first;
            const double p = e[i] / total[i];
            const double w = args.weight == nullptr ? 1.0 : args.weight[row];
            const double hit = args.y[row] == static_cast<double>(k) ? 1.0 : 0.0;
            return GradientPair{w * (p - hit), 2.0 * w * (p * (1.0 - p))};
          },
          sums);
    }
  }
}

void gradients(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  switch (args.loss) {
    case Loss::squared_error:
      return one_output<SquaredError>(args, begin, end, sums);
    case Loss::logistic:
      return one_output<Logistic>(args, begin, end, sums);
    case Loss::softmax:
      return softmax(args, begin, end, sums);
    case Loss::given:
      return given(args, begin, end, sums);
  }
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
