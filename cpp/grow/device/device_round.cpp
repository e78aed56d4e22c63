// Scores and gradients: two or three launches a round.
#include "grow/device/device_round.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "cuda/staging.h"
#include "grow/device/device_state.h"

namespace arboost::cuda {
namespace {

void upload(const Device& device, const double* from, std::size_t n, DeviceArray<double>& to) {
  make_room(to, n);
  upload_staged(device, from, n * sizeof(double), to.address());
}

}  // namespace

void DeviceRound::start(std::span<const double> scores_of_row) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  outputs_ = scores_of_row.size();
  const std::size_t size = n_rows_ * outputs_;
  DeviceArray<double> of_row;
  upload(s.device, scores_of_row.data(), outputs_, of_row);
  make_room(scores_, size);
  s.queue.launch(s.device.kernel("fill_scores"), {s.few_blocks(size)}, threads, 0, of_row.data(),
                 static_cast<std::uint32_t>(outputs_), static_cast<std::uint64_t>(size),
                 scores_.data());
  s.queue.wait();
  is_newer_ = is_current_ = true;
}

void DeviceRound::open(const LossRows& rows) {
  Device::Use use(state_.device);
  if (outputs_ != rows.outputs) is_current_ = false;
  const bool is_other = y_of_ != rows.y || weight_of_ != rows.weight;
  if (is_other || !is_current_) state_.queue.wait();  // its work may read what is replaced
  if (is_other) {
    upload(state_.device, rows.y, n_rows_, y_);
    weight_ = {};
    if (rows.weight != nullptr) upload(state_.device, rows.weight, n_rows_, weight_);
    y_of_ = rows.y;
    weight_of_ = rows.weight;
  }
  outputs_ = rows.outputs;
  if (is_current_) return;
  upload(state_.device, rows.scores, n_rows_ * outputs_, scores_);
  is_current_ = true;
}

void DeviceRound::fetch(double* scores) {
  if (is_newer_) {
    Device::Use use(state_.device);
    state_.queue.wait();
    download_staged(state_.device, scores_.address(), n_rows_ * outputs_ * sizeof(double), scores);
  }
  is_newer_ = is_current_ = false;
}

void DeviceRound::add_last(const GrownTrees& forest, std::size_t output) {
  Device::Use use(state_.device);
  leaves_.add_values(forest, outputs_, scores_.data() + output);
  is_newer_ = true;
}

void DeviceRound::add(const GrownTrees& forest, std::span<const AddedTree> trees) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  adder_.add(s.device, s.queue, *s.walked, table_, forest, trees,
             {s.all_rows(), static_cast<std::uint32_t>(n_rows_), outputs_, scores_.data()});
  is_newer_ = true;
}

// Bounds of the gradients; or their pairs, and the sums [outputs][|g|, h].
std::vector<std::int64_t> DeviceRound::run(const LossSpec& spec, const Gradients& out,
                                           bool bounds_only) {
  DeviceState& s = state_;
  const GivenTotals totals = loss_totals_.start(2 * outputs_, s.queue);
  const LossArgs args{.loss = spec.loss,
                      .parameters = parameters_.data(),
                      .least_squares = spec.least_squares,
                      .rows = rows(),
                      .g_scale = std::ldexp(1.0, out.g_exponent),
                      .h_scale = std::ldexp(1.0, out.h_exponent),
                      .pairs = bounds_only ? nullptr : pairs_[spec.least_squares].data(),
                      .row_stride = out.row_stride(),
                      .output_stride = out.output_stride()};
  s.queue.launch(s.device.kernel("gradients"), {s.few_blocks(n_rows_)}, threads, 0, args, totals);
  return loss_totals_.wait(s.queue);
}

void DeviceRound::apply_loss(const LossSpec& spec, double largest_weight, Gradients& out) {
  check_parameters(spec, outputs_);
  Device::Use use(state_.device);
  state_.send(spec.parameters, parameters_);
  make_room(pairs_[spec.least_squares], n_rows_ * outputs_);
  std::optional<GradientBounds> bounds = known_bounds(spec, rows(), largest_weight);
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
