// Samples of rows that are drawn on the device, where their positions and weights stay.
#include <bit>

#include "grow/device/device_round.h"
#include "grow/device/device_state.h"
#include "grow/device/records/sample_records.h"

namespace arboost::cuda {

namespace {

// Waits for the kernel that has collected the rows.
void take_sample(DeviceState& s, bool weighted, Sample& out) {
  const std::vector<std::int64_t> sums = s.sample_totals.wait(s.queue);
  out.size = static_cast<std::size_t>(sums[0]);
  out.weighted = weighted;
  out.on_device = true;
  out.largest_weight = weighted ? std::bit_cast<float>(static_cast<std::uint32_t>(sums[1])) : 1.0f;
}

}  // namespace

// Norms of some rows, for the plan of a draw.
std::vector<float> DeviceRound::norms_at(const NormArgs& norms, const NormRows& rows) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  make_room(memory_->norms, rows.n);
  s.queue.launch(s.device.kernel("norms_of_rows"), {blocks_for(rows.n)}, threads, 0, norms,
                 std::uint64_t{rows.step}, static_cast<std::uint32_t>(rows.n),
                 memory_->norms.data());
  return s.receive<float>(memory_->norms.address(), rows.n);
}

// Each row is drawn with a probability of `least` or more.
template <class Plan>
void DeviceRound::collect(const char* kernel, const Plan& plan, bool weighted, double least) {
  DeviceState& s = state_;
  Sample& out = sample_;
  const std::size_t n_rows = target().n_rows;
  Device::Use use(s.device);
  make_room(s.sample_positions, n_rows);
  if (weighted) make_room(s.sample_weights, n_rows);
  const DrawnRows drawn{s.sample_positions.data(), weighted ? s.sample_weights.data() : nullptr,
                        static_cast<std::uint32_t>(n_rows),
                        static_cast<std::uint32_t>(settings_.first_row)};
  s.queue.launch(s.device.kernel(kernel), {s.few_blocks(n_rows)}, threads, 0, plan, drawn,
                 s.sample_totals.start(2, s.queue));
  take_sample(s, weighted, out);
  const std::optional<std::uint32_t> row = row_of_empty(least, plan.seed);
  if (!row) return;
  out.size = 1;
  out.largest_weight = 1;
  s.send(std::vector<std::uint32_t>{*row}, s.sample_positions);
  if (weighted) s.send(std::vector<float>{1}, s.sample_weights);
}

void DeviceRound::draw_uniform(double rate, std::uint32_t bits, Team&) {
  collect("draw_uniform", uniform_plan(rate, bits), false, rate);
}

void DeviceRound::draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                                   std::uint32_t bits, Team& team) {
  if (gradients.device_pairs == nullptr)  // of a custom loss
    return sample_by_gradient(gradients, rate, reg_lambda, bits, sample_, team);
  NormArgs norms = norms_of(gradients, reg_lambda, false);
  norms.pairs = gradients.device_pairs;
  const std::vector<float> counted = norms_at(norms, rows_by_gradient(target().n_rows));
  collect("draw_by_gradient", plan_by_gradient(norms, counted, rate, bits), true, 0);
}

void DeviceRound::draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                                std::uint32_t bits, Team& team) {
  if (gradients.device_pairs == nullptr)
    return sample_one_side(gradients, top_rate, other_rate, bits, sample_, team);
  NormArgs norms = norms_of(gradients, 0, true);
  norms.pairs = gradients.device_pairs;
  const std::vector<float> counted = norms_at(norms, rows_one_side(target().n_rows));
  collect("draw_one_side", plan_one_side(norms, counted, top_rate, other_rate, bits), true, 0);
}

void draw_with_replacement(DeviceState& s, std::size_t n_rows, const std::uint64_t* ends,
                           std::uint64_t length, std::size_t n_draws, const DrawSeed& seed,
                           Sample& out) {
  Device::Use use(s.device);
  make_room(s.draw_counts, n_rows);
  make_room(s.sample_positions, n_rows);
  make_room(s.sample_weights, n_rows);
  s.queue.fill_zero(s.draw_counts.address(), n_rows * sizeof(std::uint32_t));
  s.queue.launch(s.device.kernel("count_draws"), {blocks_for(n_draws)}, threads, 0,
                 BootstrapDraws{seed.seed, seed.draw, n_draws, length, ends,
                                static_cast<std::uint32_t>(n_rows)},
                 s.draw_counts.data());
  const DrawnRows drawn{s.sample_positions.data(), s.sample_weights.data(),
                        static_cast<std::uint32_t>(n_rows), 0};
  s.queue.launch(s.device.kernel("collect_draws"), {s.few_blocks(n_rows)}, threads, 0,
                 s.draw_counts.data(), drawn, s.sample_totals.start(2, s.queue));
  take_sample(s, true, out);
}

}  // namespace arboost::cuda
