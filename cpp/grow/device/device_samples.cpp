// Samples of rows that are drawn on the device, where their positions and weights stay.
#include <bit>

#include "grow/device/device_rows.h"
#include "grow/device/device_state.h"
#include "grow/device/records/sample_records.h"

namespace arboost::cuda {

// Norms of some rows, for the plan of a draw.
std::vector<float> DeviceRows::norms_at(const NormArgs& norms, const NormRows& rows) {
  DeviceState& s = *state_;
  make_room(s.norms, rows.n);
  s.queue.launch(s.device.kernel("norms_of_rows"), {blocks_for(rows.n)}, threads, 0, norms,
                 std::uint64_t{rows.step}, static_cast<std::uint32_t>(rows.n), s.norms.data());
  return s.receive<float>(s.norms.address(), rows.n);
}

template <class Plan>
void DeviceRows::collect(const char* kernel, const Plan& plan, bool weighted, Sample& out) {
  DeviceState& s = *state_;
  make_room(s.positions, n_training_);
  if (weighted) make_room(s.weights, n_training_);
  const DrawnRows drawn{s.positions.data(), weighted ? s.weights.data() : nullptr,
                        static_cast<std::uint32_t>(n_training_)};
  const std::size_t blocks = 8 * static_cast<std::size_t>(s.device.multiprocessors());
  s.queue.launch(s.device.kernel(kernel), {std::min(blocks, blocks_for(n_training_))}, threads, 0,
                 plan, drawn, s.sample_sums.start(2, s.queue));
  const std::vector<std::int64_t> sums = s.sample_sums.wait(s.queue);
  out.size = static_cast<std::size_t>(sums[0]);
  out.weighted = weighted;
  out.on_device = true;
  out.largest_weight = weighted ? std::bit_cast<float>(static_cast<std::uint32_t>(sums[1])) : 1.0f;
  if (out.size > 0) return;
  out.size = 1;
  out.largest_weight = 1;
  s.send(std::vector<std::uint32_t>{row_of_empty(n_training_, plan.seed)}, s.positions);
  if (weighted) s.send(std::vector<float>{1}, s.weights);
}

void DeviceRows::draw_uniform(double rate, std::uint32_t seed, Sample& out) {
  collect("draw_uniform", uniform_plan(rate, seed), false, out);
}

void DeviceRows::draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                                  std::uint32_t seed, Sample& out) {
  NormArgs norms = norms_of(gradients, reg_lambda, false);
  norms.pairs = gradients.device_pairs;
  const std::vector<float> counted = norms_at(norms, rows_by_gradient(n_training_));
  collect("draw_by_gradient", plan_by_gradient(norms, counted, rate, seed), true, out);
}

void DeviceRows::draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                               std::uint32_t seed, Sample& out) {
  NormArgs norms = norms_of(gradients, 0, true);
  norms.pairs = gradients.device_pairs;
  const std::vector<float> counted = norms_at(norms, rows_one_side(n_training_));
  collect("draw_one_side", plan_one_side(norms, counted, top_rate, other_rate, seed), true, out);
}

}  // namespace arboost::cuda
