// Scores -> Gradients or a mean loss; leaves -> scores. One or two passes over the rows, in
// parallel.
#include "loss/apply.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>  // move

#include "loss/lane_sums.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t rows_per_chunk = 8192;

// The exponent that scales `bound` to at most 2^30: values keep 30 bits.
int exponent_for(double bound) {
  if (bound <= 0) return 0;
  int e;
  std::frexp(bound, &e);          // bound = m 2^e with m in [1/2, 1)
  return std::min(30 - e, 1000);  // 2^1000 is still a double, however small the bound
}

LossSums run(const LossArgs& args, Team& team) {
  LossSums total(args.rows.outputs);
  std::mutex mutex;
  team.for_chunks(0, args.rows.n_rows, rows_per_chunk,
                  [&](std::size_t begin, std::size_t end, int) {
                    LossSums sums(args.rows.outputs);
                    loss_kernels().gradients(args, begin, end, sums);
                    std::lock_guard lock(mutex);
                    total.merge(sums);
                  });
  return total;
}

LossArgs make_args(const LossSpec& spec, const LossRows& rows) {
  check_parameters(spec, rows.outputs);
  if (rows.scores == nullptr && spec.loss != Loss::squared_error && spec.loss != Loss::one_hot &&
      spec.loss != Loss::given)
    throw std::invalid_argument(
        "no scores: only squared_error and one_hot have gradients without them");
  return {.loss = spec.loss,
          .parameters = spec.parameters.data(),
          .least_squares = spec.least_squares,
          .rows = rows,
          .g_scale = 1,
          .h_scale = 1,
          .pairs = nullptr,
          .row_stride = 0,
          .output_stride = 0};
}

}  // namespace

std::optional<GradientBounds> known_bounds(const LossSpec& spec, const LossRows& rows,
                                           double weight) {
  switch (spec.loss) {
    case Loss::absolute_error:
      return GradientBounds{weight, weight};
    case Loss::quantile: {
      double steepest = 0;
      for (const double alpha : spec.parameters) steepest = std::max({steepest, alpha, 1 - alpha});
      return GradientBounds{weight * steepest, weight};
    }
    case Loss::huber:
      return GradientBounds{weight * spec.parameters[0], weight};
    case Loss::logistic:
      return GradientBounds{weight, spec.least_squares ? weight : 0.25 * weight};
    case Loss::softmax:
      return GradientBounds{weight, spec.least_squares ? weight : 0.5 * weight};
    case Loss::one_hot:
      if (rows.scores != nullptr) return std::nullopt;
      return GradientBounds{weight, weight};
    default:
      return std::nullopt;
  }
}

void check_parameters(const LossSpec& spec, std::size_t outputs) {
  std::size_t wanted = 0;
  if (spec.loss == Loss::huber || spec.loss == Loss::tweedie) wanted = 1;
  if (spec.loss == Loss::quantile) wanted = outputs;
  if (spec.parameters.size() != wanted)
    throw std::invalid_argument("the loss has " + std::to_string(wanted) + " parameters, not " +
                                std::to_string(spec.parameters.size()));
}

void set_exponents(const GradientBounds& bounds, Gradients& out) {
  require_finite(bounds.g, "gradient");
  require_finite(bounds.h, "hessian");
  out.g_exponent = exponent_for(bounds.g);
  out.h_exponent = exponent_for(bounds.h);
}

void require_finite(double bound, const char* what) {
  if (!std::isfinite(bound))
    throw std::invalid_argument(
        std::string("a ") + what +
        " is infinite or not a number: the scores have grown beyond what a double can hold. Use a "
        "smaller learning_rate, a larger reg_lambda, or bring the target to a smaller scale.");
}

double max_weight(const double* weight, std::size_t n_rows, Team& team) {
  if (weight == nullptr) return 1.0;
  double largest = 0;
  std::mutex mutex;
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    double here = 0;
    for (std::size_t i = begin; i < end; ++i) here = here < weight[i] ? weight[i] : here;
    std::lock_guard lock(mutex);
    largest = std::max(largest, here);
  });
  return largest;
}

Gradients::Gradients(std::size_t n_rows_, std::size_t outputs_, bool by_row_)
    : n_rows(n_rows_),
      outputs(outputs_),
      by_row(by_row_),
      pairs(n_rows_ * outputs_),
      sum_abs_g(outputs_, 0),
      sum_h(outputs_, 0) {}

void apply_loss(const LossSpec& spec, const LossRows& rows, double largest_weight, Gradients& out,
                Team& team) {
  Alone alone;
  apply_loss(spec, rows, largest_weight, out, team, alone);
}

void apply_loss(const LossSpec& spec, const LossRows& rows, double largest_weight, Gradients& out,
                Team& team, Collective& workers) {
  LossArgs args = make_args(spec, rows);
  std::optional<GradientBounds> bounds = known_bounds(spec, rows, largest_weight);
  if (!bounds) {
    const LossSums sums = run(args, team);
    std::int64_t largest[] = {sums.max_g_bits, sums.max_h_bits};
    workers.max(largest);
    bounds = {std::bit_cast<double>(largest[0]), std::bit_cast<double>(largest[1])};
  }
  set_exponents(*bounds, out);
  args.g_scale = std::ldexp(1.0, out.g_exponent);
  args.h_scale = std::ldexp(1.0, out.h_exponent);
  args.pairs = out.pairs.data();
  args.row_stride = out.row_stride();
  args.output_stride = out.output_stride();
  LossSums sums = run(args, team);
  out.sum_abs_g = std::move(sums.abs_g);
  out.sum_h = std::move(sums.h);
  set_filled(out);
  out.device_pairs = nullptr;
}

void set_filled(Gradients& out) {
  static std::atomic<std::uint64_t> n_filled{0};
  out.is_filled = true;
  out.version = ++n_filled;
}

double mean_loss(const LossSpec& spec, const LossRows& rows, Team& team) {
  const LossArgs args = make_args(spec, rows);
  // Sums of doubles depend on the order: those of blocks are added chunk by chunk.
  constexpr std::size_t grain = 8, blocks_of_chunk = value_chunk / value_block;
  std::vector<LossValue> blocks((rows.n_rows + value_block - 1) / value_block);
  team.for_chunks(0, blocks.size(), grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t block = begin; block < end; ++block) {
      const std::size_t first = block * value_block;
      blocks[block] =
          loss_kernels().loss_value(args, first, std::min(first + value_block, rows.n_rows));
    }
  });
  LossValue total, chunk;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    chunk.loss += blocks[block].loss;
    chunk.weight += blocks[block].weight;
    if ((block + 1) % blocks_of_chunk != 0 && block + 1 < blocks.size()) continue;
    total.loss += chunk.loss;
    total.weight += chunk.weight;
    chunk = {};
  }
  return mean_of(spec, total, rows.outputs);
}

double mean_of(const LossSpec& spec, const LossValue& total, std::size_t outputs) {
  const bool several_losses = spec.loss == Loss::quantile;
  return total.loss / total.weight / (several_losses ? static_cast<double>(outputs) : 1.0);
}

}  // namespace arboost
