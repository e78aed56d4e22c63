// Scores, gradients and samples of training rows in this process; their codes are in memory or in a
// file.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "grow/policy/node_rows.h"
#include "grow/rounds/round_rows.h"
#include "grow/trees/kept_leaves.h"

namespace arboost {

// The quantile of |y - score|; of the rows that the scores miss where that is 0, because with a
// delta of 0 Huber's loss has no gradients.
double delta_of(const LossRows& rows, double alpha, Team& team);

class HostRound : public RoundRows {
 public:
  HostRound(const NodeRows& rows, const RoundSettings& settings)
      : RoundRows(settings), rows_(rows), scores_(n_scores()) {}

  void start_scores(std::span<const double> of_row, Team& team) override;
  void set_scores(const double* scores) override;
  const double* scores() override { return scores_.data(); }
  void add_last(const GrownTrees& forest, std::size_t output, Team& team) override {
    rows_.add_values(forest, scores_of(output), team);
  }
  void add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output, double factor,
                Team& team) override;

  const Gradients& take_gradients(const LossSpec& spec, Team& team) override;
  double huber_delta(double alpha, Team& team) override {
    return delta_of(loss_rows(scores_.data()), alpha, team);
  }
  std::vector<double> refit_leaves(std::size_t output, const LeafRule& rule, std::size_t n_nodes,
                                   Team& team) override;

 protected:
  void draw_uniform(double rate, std::uint32_t bits, Team& team) override;
  void draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t bits, Team& team) override {
    sample_by_gradient(gradients, rate, reg_lambda, bits, sample_, team);
  }
  void draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t bits, Team& team) override {
    sample_one_side(gradients, top_rate, other_rate, bits, sample_, team);
  }
  ScoreRows scores_of(std::size_t output) { return {scores_.data() + output, target().outputs}; }

  const NodeRows& rows_;
  Buffer<double> scores_;
  Buffer<std::uint8_t> residuals_;  // of a refit
  KeptLeaves kept_leaves_;
};

}  // namespace arboost
