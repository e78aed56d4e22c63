// Rounds of gradient boosting by Newton steps, in one call: gradients at the scores, a sample, one
// tree for each output or one for all, new scores. The same trees as by calls for each step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "grow/device/rounds/device_evaluation.h"
#include "grow/grower.h"
#include "grow/sample/sample.h"
#include "loss/apply.h"

namespace arboost {

// Sampling of rows; for the meaning of the fields see trees/samples.py.
struct RowSampling {
  enum class Method { uniform, gradient_based, goss };
  Method method = Method::uniform;
  double rate = 1, reg_lambda = 1, top_rate = 1, other_rate = 0;
  std::uint64_t full_rounds = 0;
  bool leaves_from_all_rows = false;
};

struct RoundParams {
  LossSpec loss{};
  double largest_weight = 1;  // upper bound of the weights
  double rate = 1;            // values of trees are multiplied by it
  std::uint64_t seed = 0;
  std::uint64_t first_round = 0;  // number of rounds before a warm start
  RowSampling sampling{};
  // By output: leaf values are quantiles of the residuals, up to max_step. Empty: Newton's steps.
  std::vector<double> leaf_quantiles{};
  double max_step = 0;
};

// Memory of a fit that the rounds write to.
struct RoundState {
  Gradients& gradients;
  double* scores;  // [n_rows][outputs], those of the rows that the loss reads
  Sample& sample;
  GrownTrees& forest;  // trees of all rounds so far
};

// Evaluation sets on the device of the fit, and the losses that are taken of each after every
// round.
struct WatchedSets {
  std::vector<cuda::DeviceEvaluation*> sets = {};
  std::vector<LossSpec> losses = {};
  // [round][set][loss]
  std::vector<double> values = {};
};

// Adds rounds until there are `n_rounds` new ones or the time is over; returns their number, at
// least 1. The loss has a team of its own: its work is not in proportion to the features.
std::size_t run_rounds(Grower& grower, const RoundParams& params, const LossRows& rows,
                       std::size_t n_rounds, std::chrono::duration<double> time,
                       const RoundState& state, WatchedSets& watched, Team& loss_team, Team& team);

}  // namespace arboost
