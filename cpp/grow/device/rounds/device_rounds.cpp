// Two or three launches a round.
#include "grow/device/rounds/device_rounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "cuda/staging.h"

namespace arboost::cuda {
namespace {

constexpr unsigned threads = 256;

void upload(const Device& device, const double* from, std::size_t n, DeviceArray<double>& to) {
  make_room(to, n);
  upload_staged(device, from, n * sizeof(double), to.address());
}

// Blocks of a launch over n items in which threads take several.
std::size_t blocks_for(const Device& device, std::size_t n) {
  const auto most = 8 * static_cast<std::size_t>(device.multiprocessors());
  return std::clamp<std::size_t>((n + threads - 1) / threads, 1, most);
}

}  // namespace

void DeviceRounds::start(std::span<const double> scores_of_row, std::size_t n_rows) {
  n_rows_ = n_rows;
  outputs_ = scores_of_row.size();
  DeviceArray<double> of_row;
  upload(device_, scores_of_row.data(), outputs_, of_row);
  make_room(scores_, n_rows * outputs_);
  const std::size_t blocks = blocks_for(device_, n_rows * outputs_);
  queue_.launch(device_.kernel("fill_scores"), {blocks}, threads, 0, of_row.data(),
                static_cast<std::uint32_t>(outputs_), static_cast<std::uint64_t>(n_rows * outputs_),
                scores_.data());
  queue_.wait();
  is_newer_ = is_current_ = true;
}

void DeviceRounds::open(const LossRows& rows) {
  if (n_rows_ != rows.n_rows || outputs_ != rows.outputs) is_current_ = false;
  const bool is_other = y_of_ != rows.y;
  if (is_other || !is_current_) queue_.wait();  // its work may read what is replaced
  if (is_other) {
    upload(device_, rows.y, rows.n_rows, y_);
    if (rows.weight != nullptr) upload(device_, rows.weight, rows.n_rows, weight_);
    y_of_ = rows.y;
  }
  n_rows_ = rows.n_rows;
  outputs_ = rows.outputs;
  if (is_current_) return;
  upload(device_, rows.scores, n_rows_ * outputs_, scores_);
  is_current_ = true;
}

void DeviceRounds::fetch(double* scores) {
  if (is_newer_) {
    queue_.wait();
    download_staged(device_, scores_.address(), n_rows_ * outputs_ * sizeof(double), scores);
  }
  is_newer_ = is_current_ = false;
}

// Bounds of the gradients; or their pairs, and the sums [outputs][|g|, h].
std::vector<std::int64_t> DeviceRounds::run(const LossSpec& spec, const Gradients& out,
                                            bool bounds_only) {
  const GivenTotals totals = totals_.start(2 * outputs_, queue_);
  const LossArgs args{.loss = spec.loss,
                      .parameters = parameters_.data(),
                      .least_squares = spec.least_squares,
                      .rows = {y_.data(), weight_.data(), scores_.data(), n_rows_, outputs_},
                      .g_scale = std::ldexp(1.0, out.g_exponent),
                      .h_scale = std::ldexp(1.0, out.h_exponent),
                      .pairs = bounds_only ? nullptr : pairs_[spec.least_squares].data(),
                      .row_stride = out.row_stride(),
                      .output_stride = out.output_stride()};
  queue_.launch(device_.kernel("gradients"), {blocks_for(device_, n_rows_)}, threads, 0, args,
                totals);
  return totals_.wait(queue_);
}

void DeviceRounds::apply_loss(const LossSpec& spec, double largest_weight, Gradients& out) {
  check_parameters(spec, outputs_);
  if (parameters_.size() < spec.parameters.size()) {
    upload(device_, spec.parameters.data(), spec.parameters.size(), parameters_);
  }
  make_room(pairs_[spec.least_squares], n_rows_ * outputs_);
  const LossRows rows{y_.data(), weight_.data(), scores_.data(), n_rows_, outputs_};
  std::optional<GradientBounds> bounds = known_bounds(spec, rows, largest_weight);
  if (!bounds) {
    const std::vector<std::int64_t> bits = run(spec, out, true);
    bounds = {std::bit_cast<double>(bits[0]), std::bit_cast<double>(bits[1])};
  }
  set_exponents(*bounds, out);
  const std::vector<std::int64_t> sums = run(spec, out, false);
  for (std::size_t k = 0; k < outputs_; ++k) {
    out.sum_abs_g[k] = sums[2 * k];
    out.sum_h[k] = sums[2 * k + 1];
  }
  out.device_pairs = pairs_[spec.least_squares].data();
  out.is_filled = false;  // in the host's memory
}

}  // namespace arboost::cuda
