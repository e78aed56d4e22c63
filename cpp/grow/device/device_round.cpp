// Scores and gradients: two or three launches a round.
#include "grow/device/device_round.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "cuda/staging.h"
#include "grow/device/device_rows.h"
#include "grow/device/device_state.h"

namespace arboost::cuda {

DeviceRound::DeviceRound(DeviceState& state, DeviceLeaves& leaves, const RoundSettings& settings)
    : RoundRows(settings), state_(state), leaves_(leaves) {
  Device::Use use(state_.device);
  memory_ = std::make_unique<Memory>();
  const RoundTarget& rows = target();
  memory_->y = uploaded(state_.device, rows.y, rows.n_rows);
  if (rows.weight != nullptr) memory_->weight = uploaded(state_.device, rows.weight, rows.n_rows);
  memory_->scores = DeviceArray<double>(n_scores());
}

DeviceRound::~DeviceRound() {
  free_on(state_.device, [this] {
    state_.queue.wait();
    memory_.reset();
  });
}

LossRows DeviceRound::rows() const {
  const Memory& m = *memory_;
  return {m.y.data(), m.weight.data(), m.scores.data(), target().n_rows, target().outputs};
}

void DeviceRound::start_scores(std::span<const double> of_row, Team&) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  const DeviceArray<double> on_device = uploaded(s.device, of_row.data(), of_row.size());
  const std::size_t size = target().n_rows * target().outputs;
  s.queue.launch(s.device.kernel("fill_scores"), {s.few_blocks(size)}, threads, 0, on_device.data(),
                 static_cast<std::uint32_t>(of_row.size()), static_cast<std::uint64_t>(size),
                 memory_->scores.data());
  s.queue.wait();
  host_is_old_ = true;
}

void DeviceRound::set_scores(const double* scores) {
  Device::Use use(state_.device);
  state_.queue.wait();  // its work may read what is replaced
  upload_staged(state_.device, scores, target().n_rows * target().outputs * sizeof(double),
                memory_->scores.address());
  host_is_old_ = true;
}

const double* DeviceRound::scores() {
  if (!host_is_old_) return host_scores_.data();
  const std::size_t size = target().n_rows * target().outputs;
  make_room(host_scores_, size);
  Device::Use use(state_.device);
  state_.queue.wait();
  download_staged(state_.device, memory_->scores.address(), size * sizeof(double),
                  host_scores_.data());
  host_is_old_ = false;
  return host_scores_.data();
}

void DeviceRound::add_last(const GrownTrees& forest, std::size_t output, Team&) {
  Device::Use use(state_.device);
  leaves_.add_values(forest, target().outputs, memory_->scores.data() + output);
  host_is_old_ = true;
}

void DeviceRound::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                           double factor, Team&) {
  Device::Use use(state_.device);
  const AddedTree added{tree, output, factor};
  memory_->adder.add(state_.device, state_.queue, *state_.walked, settings_.table, forest,
                     {&added, 1},
                     {{nullptr, state_.table_rows.data()},
                      static_cast<std::uint32_t>(target().n_rows),
                      target().outputs,
                      memory_->scores.data()});
  host_is_old_ = true;
}

// Bounds of the gradients; or their pairs, and the sums [outputs][|g|, h].
std::vector<std::int64_t> DeviceRound::run(const LossSpec& spec, const Gradients& out,
                                           bool bounds_only) {
  DeviceState& s = state_;
  Memory& m = *memory_;
  const GivenTotals totals = m.loss_totals.start(2 * out.outputs, s.queue);
  const LossArgs args{.loss = spec.loss,
                      .parameters = m.parameters.data(),
                      .least_squares = spec.least_squares,
                      .rows = rows(),
                      .g_scale = std::ldexp(1.0, out.g_exponent),
                      .h_scale = std::ldexp(1.0, out.h_exponent),
                      .pairs = bounds_only ? nullptr : m.pairs[spec.least_squares].data(),
                      .row_stride = out.row_stride(),
                      .output_stride = out.output_stride()};
  s.queue.launch(s.device.kernel("gradients"), {s.few_blocks(out.n_rows)}, threads, 0, args,
                 totals);
  return m.loss_totals.wait(s.queue);
}

const Gradients& DeviceRound::take_gradients(const LossSpec& spec, Team&) {
  Gradients& out = gradients_for(spec.least_squares);
  check_parameters(spec, out.outputs);
  Device::Use use(state_.device);
  state_.send(spec.parameters, memory_->parameters);
  make_room(memory_->pairs[spec.least_squares], out.n_rows * out.outputs);
  std::optional<GradientBounds> bounds = known_bounds(spec, rows(), target().largest_weight);
  if (!bounds) {
    std::vector<std::int64_t> bits = run(spec, out, true);
    workers().max(bits);
    bounds = {std::bit_cast<double>(bits[0]), std::bit_cast<double>(bits[1])};
  }
  set_exponents(*bounds, out);
  const std::vector<std::int64_t> sums = run(spec, out, false);
  for (std::size_t k = 0; k < out.outputs; ++k) {
    out.sum_abs_g[k] = sums[2 * k];
    out.sum_h[k] = sums[2 * k + 1];
  }
  out.device_pairs = memory_->pairs[spec.least_squares].data();
  out.is_filled = false;  // in the host's memory
  return out;
}

}  // namespace arboost::cuda
