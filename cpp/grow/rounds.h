// Rounds of gradient boosting: gradients at the scores, a sample, one tree for each output or one
// for all, their leaf values, new scores, evaluation sets. Many rounds a call; rows are behind one
// interface (grow/rounds/round_rows.h), wherever they are.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "grow/grower.h"
#include "grow/rounds/dropout.h"
#include "grow/rounds/evaluation_rows.h"
#include "grow/rounds/round_rows.h"
#include "loss/apply.h"

namespace arboost {

struct RoundParams {
  // Values of leaves: the trees' own, -G / (H + lambda); quantiles of the residuals; or minimisers
  // of the loss from the sums of its gradients (loss/leaf_steps.h).
  enum class Leaves { newton, quantiles, steps };

  // Huber's parameter is the quantile of the residuals that gives delta. Loss::given: the hook of
  // `run` computes the gradients.
  LossSpec loss{};
  bool least_squares = false;  // Friedman's trees: weights in place of hessians
  Leaves leaves = Leaves::newton;
  std::vector<double> leaf_quantiles{};  // by output
  double max_step = 0;                   // of quantiles and steps
  double rate = 1;                       // factor on the values of the trees
  double largest_weight = 1;             // upper bound of the weights
  std::uint64_t seed = 0;
  std::uint64_t first_round = 0;  // number of rounds before a warm start
  RowSampling sampling{};
  std::size_t parallel_trees = 1;  // grown on a sample each; their values are averaged
  std::optional<Dropout> dropout{};
  bool one_step = false;  // a line search gives the length of the step of each round
};

// Functions of the caller for single steps of a round; empty: the core makes the step.
struct RoundHooks {
  // Writes gradients and hessians of Loss::given to the last argument. Rounds count those before a
  // warm start.
  std::function<void(const double* scores, bool least_squares, std::uint64_t round, Gradients& out)>
      gradients{};
  // The length of the step along a direction, [n_rows][outputs], from the scores.
  std::function<double(const double* scores, const double* direction)> step_length{};
  // Sets the values of the last tree, whose first output is given.
  std::function<void(std::size_t output)> leaf_values{};
};

// Evaluation sets, and what is taken of each after every round.
struct Evaluations {
  std::vector<EvaluationRows*> sets{};
  std::vector<LossSpec> losses{};
  bool keeps_scores = false;  // for metrics of the caller
};

// What a call of `Boosting::run` hands over, by round.
struct FinishedRounds {
  std::vector<double> seconds{};              // from the start of the call to the end of the round
  std::vector<double> losses{};               // [round][set][loss]
  std::vector<std::vector<double>> scores{};  // [round]: of all sets, one after the other
  std::vector<std::vector<double>>
      weights{};  // [round]: factors of all rounds, where they have any
};

class Boosting {
 public:
  // Trees are appended to the forest, which must have trees of this fit only.
  Boosting(Grower& grower, GrownTrees& forest, const Codes& table, const RoundParams& params,
           const RoundTarget& target);

  const RoundParams& params() const { return params_; }
  RoundRows& rows() { return *rows_; }
  std::size_t trees_per_round() const {
    return params_.parallel_trees * (rows_->target().outputs / forest_.width);
  }
  std::size_t n_rounds() const { return forest_.n_trees() / trees_per_round(); }
  // Factors of the rounds, under dropout or with line searches.
  const std::vector<double>& weights() const { return weights_; }
  void set_weights(std::span<const double> weights) {
    weights_.assign(weights.begin(), weights.end());
  }
  // Adds all trees to the scores, in the order of the rounds, as after a restart.
  void add_all(std::span<EvaluationRows* const> sets, Team& team);

  // Adds rounds until there are n_rounds new ones or the time is over, at least one. The loss has a
  // team of its own: its work is not in proportion to the features.
  FinishedRounds run(std::size_t n_rounds, std::chrono::duration<double> time,
                     const Evaluations& evaluations, const RoundHooks& hooks, Team& loss_team,
                     Team& team);

 private:
  struct Call {  // arguments of `run`
    const Evaluations& evaluations;
    const RoundHooks& hooks;
    Team &loss_team, &team;
  };
  // Whether a tree is added to the training scores before the round is complete: growing has found
  // the leaf of each row, and no tree is walked.
  bool adds_at_once() const {
    return !params_.dropout && (params_.parallel_trees == 1 || params_.one_step);
  }
  void run_round(const Call& call);
  std::vector<std::size_t> drop(Team& team);
  void take_gradients(const Call& call);
  const Gradients& gradients_of(const LossSpec& loss, bool least_squares, const Call& call);
  void grow_trees(std::size_t number, const Call& call);
  void set_leaf_values(std::size_t output, double rate, const Call& call);
  std::vector<double> refit(std::size_t output, const Call& call);
  double settle(std::span<const std::size_t> dropped, const Call& call);
  double step(const Call& call);
  void add_round(std::size_t round, double factor, Team& team);
  void note_round(const Call& call, FinishedRounds& finished) const;

  Grower& grower_;
  GrownTrees& forest_;
  RoundParams params_;
  std::unique_ptr<RoundRows> rows_;
  std::vector<double> weights_;
  std::vector<double> direction_;         // of the step of a line search
  LossSpec loss_;                         // of the round, with Huber's delta
  const Gradients* gradients_ = nullptr;  // of the round's trees
  const Gradients* newton_ = nullptr;     // of its leaves
};

}  // namespace arboost
