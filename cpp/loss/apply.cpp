// Scores -> Gradients; leaves -> scores. One or two passes over the rows, in parallel.
#include "loss/apply.h"

#include <bit>
#include <cmath>
#include <mutex>
#include <stdexcept>

#include "kernels.h"

namespace arboost {
namespace {

constexpr std::size_t rows_per_chunk = 8192;

// The exponent that takes `bound` to at most 2^30, so that every value keeps 30 bits below it.
int exponent_for(double bound) {
  if (bound <= 0) return 0;
  int e;
  std::frexp(bound, &e);          // bound = m 2^e with m in [1/2, 1)
  return std::min(30 - e, 1000);  // 2^1000 is still a double, however small the bound
}

LossSums run(const LossArgs& args, std::size_t n_rows, Team& team) {
  LossSums total(args.outputs);
  std::mutex mutex;
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    LossSums sums(args.outputs);
    kernels().gradients(args, begin, end, sums);
    std::lock_guard lock(mutex);
    total.merge(sums);
  });
  return total;
}

double largest_weight(const double* weight, std::size_t n_rows) {
  if (weight == nullptr) return 1.0;
  double largest = 0;
  for (std::size_t i = 0; i < n_rows; ++i) largest = std::max(largest, weight[i]);
  return largest;
}

void require_finite(double bound, const char* what) {
  if (!std::isfinite(bound))
    throw std::invalid_argument(
        std::string("a ") + what +
        " is infinite or not a number: the scores have grown beyond what a double can hold. Use a "
        "smaller learning_rate, a larger reg_lambda, or bring the target to a smaller scale.");
}

}  // namespace

Gradients::Gradients(std::size_t n_rows_, std::size_t outputs_, bool by_row_)
    : n_rows(n_rows_),
      outputs(outputs_),
      by_row(by_row_),
      pairs(n_rows_ * outputs_),
      sum_abs_g(outputs_, 0),
      sum_h(outputs_, 0) {}

void apply_loss(Loss loss, const double* y, const double* weight, const double* scores,
                Gradients& out, Team& team) {
  LossArgs args{.loss = loss,
                .y = y,
                .weight = weight,
                .scores = scores,
                .outputs = out.outputs,
                .g_scale = 1,
                .h_scale = 1,
                .pairs = nullptr,
                .row_stride = out.row_stride(),
                .output_stride = out.output_stride()};
  double max_g, max_h;
  if (loss == Loss::logistic || loss == Loss::softmax) {
    // Known without a pass over the rows: |g| <= w, and h <= w / 4 or w / 2.
    max_g = largest_weight(weight, out.n_rows);
    max_h = max_g * (loss == Loss::logistic ? 0.25 : 0.5);
  } else {
    const LossSums bounds = run(args, out.n_rows, team);
    max_g = std::bit_cast<double>(bounds.max_g_bits);
    max_h = std::bit_cast<double>(bounds.max_h_bits);
  }
  require_finite(max_g, "gradient");
  require_finite(max_h, "hessian");
  out.g_exponent = exponent_for(max_g);
  out.h_exponent = exponent_for(max_h);
  args.g_scale = std::ldexp(1.0, out.g_exponent);
  args.h_scale = std::ldexp(1.0, out.h_exponent);
  args.pairs = out.pairs.data();
  LossSums sums = run(args, out.n_rows, team);
  out.sum_abs_g = std::move(sums.abs_g);
  out.sum_h = std::move(sums.h);
}

void add_leaves(const std::uint32_t* leaf_of_row, const double* values, std::size_t width,
                std::size_t output, std::size_t n_rows, std::size_t outputs, double* scores,
                Team& team) {
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const double* value = values + leaf_of_row[i] * width;
      double* score = scores + i * outputs + output;
      for (std::size_t k = 0; k < width; ++k) score[k] += value[k];
    }
  });
}

}  // namespace arboost
