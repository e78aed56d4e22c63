// Every step is a function of another file; the loop alone is here.
#include "grow/rounds.h"

#include <optional>

#include "grow/device/device_rows.h"

namespace arboost {
namespace {

// The sample of a round; null for all rows.
const Sample* draw(const RoundParams& params, std::uint64_t round, const RoundState& state,
                   Team& team) {
  const RowSampling& rows = params.sampling;
  const std::uint32_t bits = draw_bits({params.seed, round});
  switch (rows.method) {
    case RowSampling::Method::uniform:
      if (rows.rate >= 1) return nullptr;
      sample_uniform(state.gradients.n_rows, rows.rate, bits, state.sample, team);
      break;
    case RowSampling::Method::gradient_based:
      if (rows.rate >= 1) return nullptr;
      sample_by_gradient(state.gradients, rows.rate, rows.reg_lambda, bits, state.sample, team);
      break;
    case RowSampling::Method::goss:
      if (params.first_round + round < rows.full_rounds) return nullptr;
      sample_one_side(state.gradients, rows.top_rate, rows.other_rate, bits, state.sample, team);
      break;
  }
  return &state.sample;
}

// The same on a device, which has the gradients.
const Sample* draw(const RoundParams& params, std::uint64_t round, const RoundState& state,
                   cuda::DeviceRows& device) {
  const RowSampling& rows = params.sampling;
  const std::uint32_t bits = draw_bits({params.seed, round});
  switch (rows.method) {
    case RowSampling::Method::uniform:
      if (rows.rate >= 1) return nullptr;
      device.draw_uniform(rows.rate, bits, state.sample);
      break;
    case RowSampling::Method::gradient_based:
      if (rows.rate >= 1) return nullptr;
      device.draw_by_gradient(state.gradients, rows.rate, rows.reg_lambda, bits, state.sample);
      break;
    case RowSampling::Method::goss:
      if (params.first_round + round < rows.full_rounds) return nullptr;
      device.draw_one_side(state.gradients, rows.top_rate, rows.other_rate, bits, state.sample);
      break;
  }
  return &state.sample;
}

}  // namespace

std::size_t run_rounds(Grower& grower, const RoundParams& params, const LossRows& rows,
                       std::size_t n_rounds, std::chrono::duration<double> time,
                       const RoundState& state, Team& loss_team, Team& team) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  GrownTrees& forest = state.forest;
  const std::size_t trees_per_round = rows.outputs / forest.width;
  cuda::DeviceRows* device = grower.on_device();
  std::optional<cuda::Device::Use> use;
  if (device != nullptr) device->open_rounds(rows, use);
  std::size_t done = 0;
  do {
    if (device != nullptr)
      device->rounds().apply_loss(params.loss, params.largest_weight, state.gradients);
    else
      apply_loss(params.loss, rows, params.largest_weight, state.gradients, loss_team);
    grower.propose(state.gradients, team);
    const std::uint64_t round = forest.n_trees() / trees_per_round;
    const Sample* sample =
        device != nullptr ? draw(params, round, state, *device) : draw(params, round, state, team);
    for (std::size_t output = 0; output < rows.outputs; output += forest.width) {
      const TreeRequest request{.seed = params.seed,
                                .number = forest.n_trees(),
                                .turn = 0,
                                .rate = params.rate,
                                .sample = sample,
                                .leaves_from_all_rows = params.sampling.leaves_from_all_rows};
      grower.grow(state.gradients, output, request, forest, team);
      if (device != nullptr)
        device->add_values(forest, output);
      else
        grower.add_last(forest, output, rows.outputs, state.scores, team);
    }
    ++done;
  } while (done < n_rounds && Clock::now() - start < time);
  return done;
}

}  // namespace arboost
