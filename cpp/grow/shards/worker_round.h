// Scores, gradients and samples of training rows that are divided among workers.
//
// Rounds that need the scores of no other rows compute those of this worker's rows alone. Other
// rounds have the scores of all rows on every worker, which the leaves of the rows keep equal: a
// byte or two a row and tree.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "grow/rounds/evaluation_rows.h"
#include "grow/rounds/host_round.h"
#include "grow/shards/share_rows.h"

namespace arboost {

class WorkerRound final : public RoundRows {
 public:
  WorkerRound(ShareRows& rows, const RoundSettings& settings);

  // One round a call: clocks differ between workers.
  bool has_time(std::chrono::duration<double>, std::chrono::duration<double>) const override {
    return false;
  }
  void start_scores(std::span<const double> of_row, Team& team) override;
  void set_scores(const double* scores) override;
  const double* scores() override;
  void add_last(const GrownTrees& forest, std::size_t output, Team& team) override;
  void add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output, double factor,
                Team& team) override;
  const Gradients& take_gradients(const LossSpec& spec, Team& team) override {
    return local_->take_gradients(spec, team);
  }
  const Sample* draw(const RowSampling& sampling, const Gradients& gradients,
                     std::uint64_t n_rounds, const DrawSeed& seed, Team& team) override {
    return local_->draw(sampling, gradients, n_rounds, seed, team);
  }
  const Gradients& gradients(bool least_squares) const override {
    return local_->gradients(least_squares);
  }
  const Sample& sample() const override { return local_->sample(); }

 private:
  const ShareRows& rows_;
  std::unique_ptr<RoundRows> local_;  // of this worker's rows, wherever they are
  Buffer<double> scores_;             // of all rows; where they have been asked for
  bool is_old_ = true;
};

// The scores of all rows, on every worker.
class GatheredRound final : public HostRound {
 public:
  GatheredRound(const ShareRows& rows, const RoundSettings& settings)
      : HostRound(rows, settings), share_(rows) {}

  bool has_time(std::chrono::duration<double>, std::chrono::duration<double>) const override {
    return false;
  }
  void add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output, double factor,
                Team& team) override;

 private:
  const ShareRows& share_;
};

// An evaluation set whose rows are divided among workers; every worker has the scores of all.
class SharedEvaluation final : public HostEvaluation {
 public:
  SharedEvaluation(const SharedCodes& codes, std::span<const RowId> table_rows,
                   const LossRows& rows, bool adds_repeatedly)
      : HostEvaluation(codes.local_codes, table_rows, rows, adds_repeatedly), shared_(codes) {}

 protected:
  void add_tree(const GrownTrees& forest, std::size_t tree, double factor, ScoreRows scores,
                Team& team) override;

 private:
  SharedCodes shared_;
};

}  // namespace arboost
