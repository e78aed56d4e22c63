// Scores -> gradients and hessians -> fixed-point pairs, in one vectorised pass. About 1 ns a row.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "loss/losses.h"
#include "loss/pointwise.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Computes bounds or writes pairs of the rows' gradients pair_at(i).
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

// The same of the rows' gradients at(i, weight).
template <class LossAt>
void reduce_weighted(const LossArgs& args, std::size_t begin, std::size_t end, std::size_t output,
                     LossAt at, LossSums& sums) {
  const double* weight = args.rows.weight;
  if (weight == nullptr)
    reduce(args, begin, end, output, [=](std::size_t i) { return at(i, 1.0); }, sums);
  else
    reduce(args, begin, end, output, [=](std::size_t i) { return at(i, weight[i]); }, sums);
}

template <class LossOfRow>
void one_output(const LossArgs& args, std::size_t begin, std::size_t end, std::size_t output,
                LossOfRow loss, LossSums& sums) {
  const double* y = args.rows.y;
  const double* scores = args.rows.scores + output;
  const std::size_t outputs = args.rows.outputs;
  if constexpr (requires { loss.exponent(0.0); }) {
    for (std::size_t first = begin; first < end; first += exp_block) {
      const std::size_t n = end - first < exp_block ? end - first : exp_block;
      double block[exp_block];
      for (std::size_t i = 0; i < n; ++i) block[i] = loss.exponent(scores[(first + i) * outputs]);
      exponentials_in_place(block, n);
      const double* e = block;
      const auto at = [=](std::size_t i, double w) {
        return loss.at_exponential(y[i], e[i - first], w);
      };
      reduce_weighted(args, first, first + n, output, at, sums);
    }
  } else if (outputs > 1) {
    const auto at = [=](std::size_t i, double w) { return loss.at(y[i], scores[i * outputs], w); };
    reduce_weighted(args, begin, end, output, at, sums);
  } else {
    const auto at = [=](std::size_t i, double w) { return loss.at(y[i], scores[i], w); };
    reduce_weighted(args, begin, end, 0, at, sums);
  }
}

// The first step of a loss whose hessians are the weights: all scores are 0.
template <class LossOfRow>
void at_zero(const LossArgs& args, std::size_t begin, std::size_t end, std::size_t output,
             LossOfRow loss, LossSums& sums) {
  const auto at = [y = args.rows.y, loss](std::size_t i, double w) {
    return loss.at(y[i], 0.0, w);
  };
  reduce_weighted(args, begin, end, output, at, sums);
}

void gradients_at_zero(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  for (std::size_t k = 0; k < args.rows.outputs; ++k)
    if (args.loss == Loss::one_hot)
      at_zero(args, begin, end, k, OneHot{static_cast<double>(k)}, sums);
    else
      at_zero(args, begin, end, k, SquaredError{}, sums);
}

// Given gradients, as arrays [n_rows][outputs]; scores are ignored.
void given(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  const std::size_t outputs = args.rows.outputs;
  for (std::size_t k = 0; k < outputs; ++k)
    reduce(
        args, begin, end, k,
        [=](std::size_t i) {
          const std::size_t at = i * outputs + k;
          return GradientPair{args.rows.y[at], args.rows.weight[at]};
        },
        sums);
}

// Log loss of K classes: with p_k = e^score_k / sum_j e^score_j, g_k = w (p_k - [y = k]) and
// h_k = 2 w p_k (1 - p_k), the diagonal bound that XGBoost uses. Blocks of rows, class by class.
void softmax(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  constexpr std::size_t block = 128;
  const std::size_t outputs = args.rows.outputs;
  const bool least_squares = args.least_squares;
  std::vector<double> exps(outputs * block);
  double highest[block], total[block];
  for (std::size_t first = begin; first < end; first += block) {
    const std::size_t n = end - first < block ? end - first : block;
    const double* scores = args.rows.scores + first * outputs;
    for (std::size_t i = 0; i < n; ++i) highest[i] = scores[i * outputs];
    for (std::size_t k = 1; k < outputs; ++k)
      for (std::size_t i = 0; i < n; ++i) {
        const double score = scores[i * outputs + k];
        highest[i] = score > highest[i] ? score : highest[i];
      }
    for (std::size_t i = 0; i < n; ++i) total[i] = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      double* e = exps.data() + k * block;
      for (std::size_t i = 0; i < n; ++i) e[i] = scores[i * outputs + k] - highest[i];
      exponentials_in_place(e, n);
      for (std::size_t i = 0; i < n; ++i) total[i] += e[i];
    }
    for (std::size_t k = 0; k < outputs; ++k) {
      const double* e = exps.data() + k * block;
      reduce(
          args, first, first + n, k,
          [&](std::size_t row) {
            const std::size_t i = row - first;
            const double p = e[i] / total[i];
            const double w = args.rows.weight == nullptr ? 1.0 : args.rows.weight[row];
            const double hit = args.rows.y[row] == static_cast<double>(k) ? 1.0 : 0.0;
            return GradientPair{w * (p - hit), least_squares ? w : 2.0 * w * (p * (1.0 - p))};
          },
          sums);
    }
  }
}

void gradients(const LossArgs& args, std::size_t begin, std::size_t end, LossSums& sums) {
  if (args.loss == Loss::softmax) return softmax(args, begin, end, sums);
  if (args.loss == Loss::given) return given(args, begin, end, sums);
  if (args.rows.scores == nullptr) return gradients_at_zero(args, begin, end, sums);
  for (std::size_t k = 0; k < args.rows.outputs; ++k)
    with_loss(args, k, [&](auto loss) {
      if (args.least_squares)
        one_output(args, begin, end, k, LeastSquares<decltype(loss)>{loss}, sums);
      else
        one_output(args, begin, end, k, loss, sums);
    });
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
