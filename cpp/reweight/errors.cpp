// Errors of a regressor -> losses -> distribution over rows (AdaBoost.R2). A few passes over the
// rows, parallel over chunks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "loss/loss_kernels.h"
#include "reweight/reweight.h"
#include "reweight/reweight_kernels.h"
#include "reweight/scale.h"

namespace arboost {
namespace {

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
