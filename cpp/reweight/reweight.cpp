// Scores of classes, or errors of a regressor -> distribution over rows. A few passes over the
// rows, parallel over chunks, whose results are combined in their order.
#include "reweight/reweight.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t rows_per_chunk = 8192;

// e^(a - b) as all machines compute it.
double exp_of_difference(double a, double b) {
  double e = a - b;
  loss_kernels().exponentials(&e, 1);
  return e;
}

// ---- chunks ----

// In the order of the chunks.
LossValue total(const std::vector<LossValue>& chunks) {
  LossValue all;
  for (const LossValue& chunk : chunks) {
    all.loss += chunk.loss;
    all.weight += chunk.weight;
  }
  return all;
}

// The highest of all, and the sum in units of its exponential.
Weighed total(const std::vector<Weighed>& chunks) {
  Weighed all{-std::numeric_limits<double>::infinity(), 0};
  for (const Weighed& chunk : chunks) all.highest = std::max(all.highest, chunk.highest);
  for (const Weighed& chunk : chunks)
    all.sum += chunk.sum * exp_of_difference(chunk.highest, all.highest);
  return all;
}

// True if division by the sum neither overflows nor loses precision.
bool is_scale(double sum) {
  // The smallest sum whose inverse, times 2^32 rows, is finite.
  return sum >= 0x1p-980 && std::isfinite(sum);
}

// Throws with the cause of an invalid sum of weights.
[[noreturn]] void refuse_weights(const double* weight, std::size_t n_rows) {
  double largest = 0;
  for (std::size_t i = 0; weight != nullptr && i < n_rows; ++i) {
    if (!(weight[i] >= 0 && std::isfinite(weight[i])))
      throw std::invalid_argument("the weight of row " + std::to_string(i) + " is " +
                                  std::to_string(weight[i]) +
                                  ", but weights must be finite numbers from 0 on");
    largest = std::max(largest, weight[i]);
  }
  if (largest == 0) throw std::invalid_argument("no row has a weight above 0");
  throw std::invalid_argument(
      "the sum of the weights is too large or too small for a double: bring them to a mean near 1");
}

// Rescales chunks, each in its own unit, so that all rows sum to `sum`.
void scale_to(double sum, const std::vector<Weighed>& chunks, const Weighed& all, double* out,
              std::size_t n_rows, Team& team) {
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    const double highest = chunks[begin / rows_per_chunk].highest;
    const double factor = exp_of_difference(highest, all.highest) * (sum / all.sum);
    for (std::size_t i = begin; i < end; ++i) out[i] *= factor;
  });
}

// ---- classes ----

// Throws with the cause of a NaN or infinite sum.
[[noreturn]] void refuse(const LossRows& rows) {
  const std::size_t n_classes = rows.outputs == 1 ? 2 : rows.outputs;
  for (std::size_t i = 0; i < rows.n_rows; ++i) {
    const std::string row = " in row " + std::to_string(i);
    const double y = rows.y[i];
    if (!(y >= 0 && y < static_cast<double>(n_classes) && y == std::floor(y)))
      throw std::invalid_argument("y is " + std::to_string(y) + row + ", not a class of 0 to " +
                                  std::to_string(n_classes - 1));
    for (std::size_t k = 0; k < rows.outputs; ++k)
      if (!std::isfinite(rows.scores[i * rows.outputs + k]))
        throw std::invalid_argument("a score is infinite or not a number" + row);
  }
  refuse_weights(rows.weight, rows.n_rows);
}

// ---- AdaBoost.R2 ----

constexpr double largest_double = std::numeric_limits<double>::max();

// With factors in [e^-300, e^300] and a sum of at least 2^-400, the sum over up to 2^32 rows
// neither overflows nor underflows.
constexpr double largest_log_factor = 300;
constexpr double smallest_sum = 0x1p-400;

// Throws with the first invalid number, or the cause of a zero sum of weights.
[[noreturn]] void refuse(const double* numbers, const char* what, double largest,
                         std::span<const double> distribution) {
  for (std::size_t i = 0; i < distribution.size(); ++i)
    if (!(numbers[i] >= 0 && numbers[i] <= largest))
      throw std::invalid_argument("the " + std::string(what) + " of row " + std::to_string(i) +
                                  " is " + std::to_string(numbers[i]) + ", but it must be " +
                                  (largest > 1 ? "finite" : "from 0 to 1"));
  refuse_weights(distribution.data(), distribution.size());
}

// out = |y - prediction|. Returns the largest error of rows of nonzero weight, or NaN if any number
// is invalid.
double write_errors(const PredictedRows& rows, double* out, Team& team) {
  double largest = 0;
  bool all_allowed = true;
  std::mutex mutex;
  team.for_chunks(0, rows.n_rows(), rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    double here = 0;
    bool allowed = true;
    for (std::size_t i = begin; i < end; ++i) {
      const double error = std::abs(rows.y[i] - rows.prediction[i]);
      const double counted = rows.distribution[i] > 0 ? error : 0.0;
      out[i] = error;
      here = counted > here ? counted : here;
      allowed &= error <= largest_double && rows.distribution[i] >= 0;
    }
    std::lock_guard lock(mutex);
    largest = std::max(largest, here);
    all_allowed &= allowed;
  });
  return all_allowed ? largest : std::numeric_limits<double>::quiet_NaN();
}

// Errors relative to the largest -> losses, in place.
void apply(R2Loss loss, double* shares, std::size_t n) {
  switch (loss) {
    case R2Loss::linear:
      return;
    case R2Loss::square:
      for (std::size_t i = 0; i < n; ++i) shares[i] *= shares[i];
      return;
    case R2Loss::exponential:
      for (std::size_t i = 0; i < n; ++i) shares[i] = -shares[i];
      loss_kernels().exponentials(shares, n);
      for (std::size_t i = 0; i < n; ++i) shares[i] = 1.0 - shares[i];
  }
}

}  // namespace

ScoresOfClasses class_distribution(const LossRows& rows, double* out, Team& team) {
  const ReweightKernels& k = reweight_kernels();
  const std::size_t n_chunks = (rows.n_rows + rows_per_chunk - 1) / rows_per_chunk;
  std::vector<LossValue> votes(n_chunks);
  std::vector<Weighed> chunks(n_chunks);
  team.for_chunks(0, rows.n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t chunk = begin / rows_per_chunk;
    const double* weight = rows.weight == nullptr ? nullptr : rows.weight + begin;
    votes[chunk] = k.vote(rows, begin, end, out + begin);
    chunks[chunk] = k.weigh(out + begin, weight, end - begin, out + begin);
  });
  const LossValue vote = total(votes);
  const Weighed all = total(chunks);
  if (!std::isfinite(vote.loss) || !is_scale(vote.weight) || !is_scale(all.sum)) refuse(rows);
  scale_to(static_cast<double>(rows.n_rows), chunks, all, out, rows.n_rows, team);
  return {all.highest + (loss_kernels().logarithm(all.sum) - loss_kernels().logarithm(vote.weight)),
          vote.loss / vote.weight};
}

double weighted_error(const LossRows& rows, Team& team) {
  std::vector<LossValue> votes((rows.n_rows + rows_per_chunk - 1) / rows_per_chunk);
  team.for_chunks(0, rows.n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    votes[begin / rows_per_chunk] = reweight_kernels().vote(rows, begin, end, nullptr);
  });
  const LossValue vote = total(votes);
  if (!std::isfinite(vote.loss) || !is_scale(vote.weight)) refuse(rows);
  return vote.loss / vote.weight;
}

double r2_losses(const PredictedRows& rows, R2Loss loss, double* out, Team& team) {
  const double* distribution = rows.distribution.data();
  const double largest = write_errors(rows, out, team);
  if (std::isnan(largest)) refuse(out, "error", largest_double, rows.distribution);
  const double unit = largest > 0 ? largest : 1.0;
  std::vector<LossValue> chunks((rows.n_rows() + rows_per_chunk - 1) / rows_per_chunk);
  team.for_chunks(0, rows.n_rows(), rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const double share = out[i] / unit;
      out[i] = share < 1.0 ? share : 1.0;
    }
    apply(loss, out + begin, end - begin);
    chunks[begin / rows_per_chunk] =
        loss_kernels().weighted_sum(out + begin, distribution + begin, end - begin);
  });
  const LossValue all = total(chunks);
  if (!is_scale(all.weight)) refuse_weights(distribution, rows.n_rows());
  return all.loss / all.weight;
}

void r2_reweight(const double* losses, double log_factor, std::span<double> distribution,
                 Team& team) {
  if (!(std::abs(log_factor) <= largest_log_factor))
    throw std::invalid_argument("rate * log(beta) is " + std::to_string(log_factor) +
                                ", but it must be from -300 to 300: use a smaller learning_rate");
  const std::size_t n_rows = distribution.size();
  const std::size_t n_chunks = (n_rows + rows_per_chunk - 1) / rows_per_chunk;
  // Validate first: an invalid number must not destroy the distribution.
  std::vector<std::uint8_t> is_allowed(n_chunks);
  std::vector<LossValue> sums(n_chunks);
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    bool allowed = true;
    for (std::size_t i = begin; i < end; ++i)
      allowed &= losses[i] >= 0 && losses[i] <= 1 && distribution[i] >= 0;
    is_allowed[begin / rows_per_chunk] = allowed;
    sums[begin / rows_per_chunk] =
        loss_kernels().weighted_sum(losses + begin, distribution.data() + begin, end - begin);
  });
  const double sum = total(sums).weight;
  if (!(sum >= smallest_sum && std::isfinite(sum)) ||
      std::find(is_allowed.begin(), is_allowed.end(), 0) != is_allowed.end())
    refuse(losses, "loss", 1, distribution);
  std::vector<Weighed> chunks(n_chunks);
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    Buffer<double> margins(end - begin);
    for (std::size_t i = begin; i < end; ++i) margins[i - begin] = -log_factor * (1.0 - losses[i]);
    double* weights = distribution.data() + begin;
    chunks[begin / rows_per_chunk] =
        reweight_kernels().weigh(margins.data(), weights, end - begin, weights);
  });
  scale_to(1.0, chunks, total(chunks), distribution.data(), n_rows, team);
}

}  // namespace arboost
