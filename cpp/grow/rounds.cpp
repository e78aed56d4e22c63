// Every step is a function of another file; the loop alone is here.
#include "grow/rounds.h"

#include <algorithm>

#include "grow/device/device_rows.h"
#include "grow/shards/share_rows.h"
#include "loss/leaf.h"

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
      device.round().draw_uniform(rows.rate, bits, state.sample);
      break;
    case RowSampling::Method::gradient_based:
      if (rows.rate >= 1) return nullptr;
      device.round().draw_by_gradient(state.gradients, rows.rate, rows.reg_lambda, bits,
                                      state.sample);
      break;
    case RowSampling::Method::goss:
      if (params.first_round + round < rows.full_rounds) return nullptr;
      device.round().draw_one_side(state.gradients, rows.top_rate, rows.other_rate, bits,
                                   state.sample);
      break;
  }
  return &state.sample;
}

// Rows of other workers are needed for samples by gradient and quantiles of leaves.
bool needs_all_rows(const RoundParams& params) {
  return !params.leaf_quantiles.empty() || params.sampling.method != RowSampling::Method::uniform;
}

// One round on the worker's own rows of a shared table: scores, gradients and sample of no others.
void run_own_round(Grower& grower, ShareRows& local_rows, const RoundParams& params,
                   const LossRows& rows, const RoundState& state, Team& loss_team, Team& team) {
  GrownTrees& forest = state.forest;
  Gradients& gradients = local_rows.own_gradients(rows.outputs, state.gradients.by_row);
  apply_loss(params.loss, local_rows.own_rows(rows), params.largest_weight, gradients, loss_team,
             local_rows.workers());
  grower.propose(gradients, team);
  const std::uint64_t round = forest.n_trees() / (rows.outputs / forest.width);
  const bool samples = params.sampling.rate < 1;
  if (samples)
    local_rows.draw_own(params.sampling.rate, draw_bits({params.seed, round}), state.sample, team);
  for (std::size_t output = 0; output < rows.outputs; output += forest.width) {
    grower.grow(gradients, output,
                {.seed = params.seed,
                 .number = forest.n_trees(),
                 .turn = 0,
                 .rate = params.rate,
                 .sample = samples ? &state.sample : nullptr,
                 .leaves_from_all_rows = params.sampling.leaves_from_all_rows},
                forest, team);
    local_rows.add_own(forest, {state.scores + output, rows.outputs}, team);
  }
}

// Sets the values of the last tree to quantiles of the residuals in its leaves.
void set_quantiles(Grower& grower, const RoundParams& params, const LossRows& rows,
                   std::size_t output, double scale, const RoundState& state,
                   cuda::DeviceRows* device, Team& team) {
  GrownTrees& forest = state.forest;
  const std::size_t tree = forest.n_trees() - 1, n_nodes = forest.n_nodes(tree);
  std::vector<std::uint32_t> leaves;
  if (device == nullptr) leaves = grower.leaf_of_position();
  std::vector<double> values(n_nodes * forest.width);
  for (std::size_t k = 0; k < forest.width; ++k) {
    const double alpha = params.leaf_quantiles[output + k];
    const std::vector<double> leaf_values =
        device != nullptr
            ? device->round().refit_leaves(output + k, {alpha, {}}, scale, n_nodes)
            : refit_leaves(rows, output + k, leaves.data(), n_nodes, {alpha, {}}, team);
    for (std::size_t i = 0; i < n_nodes; ++i)
      values[i * forest.width + k] =
          params.rate * std::clamp(leaf_values[i], -params.max_step, params.max_step);
  }
  forest.set_values(tree, values, grower.params().monotone);
}

// Fetches the losses of the rounds.
void take_losses(std::size_t n_rounds, WatchedSets& watched) {
  const std::size_t n_sets = watched.sets.size(), n_losses = watched.losses.size();
  watched.values.resize(n_rounds * n_sets * n_losses);
  for (std::size_t s = 0; s < n_sets; ++s) {
    const std::vector<double> losses = watched.sets[s]->losses();
    for (std::size_t round = 0; round < n_rounds; ++round)
      for (std::size_t l = 0; l < n_losses; ++l)
        watched.values[(round * n_sets + s) * n_losses + l] = losses[round * n_losses + l];
  }
}

}  // namespace

std::size_t run_rounds(Grower& grower, const RoundParams& params, const LossRows& rows,
                       std::size_t n_rounds, std::chrono::duration<double> time,
                       const RoundState& state, WatchedSets& watched, Team& loss_team, Team& team) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  GrownTrees& forest = state.forest;
  const std::size_t trees_per_round = rows.outputs / forest.width;
  cuda::DeviceRows* device = grower.on_device();
  if (device != nullptr) device->round().open(rows);
  const bool scales = !params.leaf_quantiles.empty() && rows.weight != nullptr;
  const double scale = scales ? weight_scale(rows, loss_team) : 1;
  std::size_t done = 0;
  ShareRows* shared = grower.shared();
  if (shared != nullptr && needs_all_rows(params)) shared->fetch_scores(rows.outputs, state.scores);
  // Clocks differ between workers.
  const auto has_time = [&] { return shared != nullptr || Clock::now() - start < time; };
  do {
    if (shared != nullptr && !needs_all_rows(params)) {
      run_own_round(grower, *shared, params, rows, state, loss_team, team);
      continue;
    }
    if (device != nullptr)
      device->round().apply_loss(params.loss, params.largest_weight, state.gradients);
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
      if (!params.leaf_quantiles.empty())
        set_quantiles(grower, params, rows, output, scale, state, device, team);
      if (device != nullptr)
        device->round().add_last(forest, output);
      else
        grower.add_last(forest, output, rows.outputs, state.scores, team);
    }
    for (cuda::DeviceEvaluation* set : watched.sets) {
      set->add(forest, forest.n_trees() - trees_per_round, trees_per_round);
      for (const LossSpec& loss : watched.losses) set->start_loss(loss);
    }
  } while (++done < n_rounds && has_time());
  take_losses(done, watched);
  return done;
}

}  // namespace arboost
