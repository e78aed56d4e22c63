// The training rows of a fit between two trees: their scores, gradients and samples.
//
// The seam between the rounds of boosting (grow/rounds.h) and the rows, wherever they are. Rows in
// memory or in a file have their scores in this process (grow/rounds/host_round.h); workers have
// those of the rows that they hold (grow/shards/worker_round.h); a CUDA device has all of it in its
// own memory (grow/device/device_round.h). Below it, trees grow on the same rows
// (grow/policy/node_rows.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/collective.h"
#include "base/parallel.h"
#include "grow/sample/sample.h"
#include "grow/trees/grown_trees.h"
#include "loss/apply.h"
#include "loss/leaf.h"
#include "table/codes.h"

namespace arboost {

// Sampling of rows; for the meaning of the fields see trees/samples.py.
struct RowSampling {
  enum class Method { uniform, gradient_based, goss };
  Method method = Method::uniform;
  double rate = 1, reg_lambda = 1, top_rate = 1, other_rate = 0;
  std::uint64_t full_rounds = 0;
  bool leaves_from_all_rows = false;
};

// Targets and weights of the training rows.
struct RoundTarget {
  const double* y;       // [n_rows]
  const double* weight;  // [n_rows], or null for 1
  std::size_t n_rows, outputs;
  double largest_weight;  // upper bound of the weights
};

struct RoundSettings {
  const Codes& table;  // that the splits of grown trees refer to
  RoundTarget target;
  bool by_row;           // layout of the gradients, for vector leaves
  bool needs_all_rows;   // some step needs the scores of all rows in one process
  bool adds_repeatedly;  // trees are added to the same scores again and again
  // Where the rows are those of one worker: the others, and the place among the rows of all.
  Collective* workers = nullptr;
  std::size_t first_row = 0, all_rows = 0;
};

class RoundRows {
 public:
  explicit RoundRows(const RoundSettings& settings) : settings_(settings) {}
  virtual ~RoundRows() = default;
  RoundRows(const RoundRows&) = delete;
  RoundRows& operator=(const RoundRows&) = delete;

  const RoundTarget& target() const { return settings_.target; }
  virtual const Sample& sample() const { return sample_; }
  // Whether another round may follow in the same call.
  virtual bool has_time(std::chrono::duration<double> elapsed,
                        std::chrono::duration<double> limit) const {
    return elapsed < limit;
  }

  // ---- scores, [n_rows][outputs] ----
  virtual void start_scores(std::span<const double> of_row, Team& team) = 0;
  virtual void set_scores(const double* scores) = 0;
  // Those of all training rows, in the memory of this process until the next change.
  virtual const double* scores() = 0;
  // Adds the values of the last tree, for outputs from this one on.
  virtual void add_last(const GrownTrees& forest, std::size_t output, Team& team) = 0;
  // Adds those of any tree, times a factor.
  virtual void add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                        double factor, Team& team) = 0;

  // ---- gradients at the scores, until the next call with the same least_squares ----
  virtual const Gradients& take_gradients(const LossSpec& spec, Team& team) = 0;
  // The same where the host computes them from the scores of all rows.
  const Gradients& fill_gradients(bool least_squares, FunctionRef<void(Gradients&)> fill);
  // Those that were taken last.
  virtual const Gradients& gradients(bool least_squares) const {
    return *gradients_[least_squares];
  }

  // The sample of a tree, of the rows by these gradients; null: all rows. `n_rounds` rounds came
  // before, those before a warm start included.
  virtual const Sample* draw(const RowSampling& sampling, const Gradients& gradients,
                             std::uint64_t n_rounds, const DrawSeed& seed, Team& team);

  // ---- statistics of residuals, where all rows are here ----
  // Huber's delta: the quantile of |y - score|, of rows that the scores miss where it would be 0.
  virtual double huber_delta(double alpha, Team& team);
  // The values of all nodes of the last tree, from the residuals in its leaves.
  virtual std::vector<double> refit_leaves(std::size_t output, const LeafRule& rule,
                                           std::size_t n_nodes, Team& team);

 protected:
  Collective& workers() { return settings_.workers == nullptr ? alone_ : *settings_.workers; }
  // Room for scores, which a worker without rows has, too: none are scores of 0.
  std::size_t n_scores() const {
    return std::max<std::size_t>(1, target().n_rows * target().outputs);
  }
  Gradients& gradients_for(bool least_squares);
  virtual void draw_uniform(double rate, std::uint32_t bits, Team& team);
  // The row of this process in a sample that would be empty otherwise, if any. Each row of all
  // workers was drawn with a probability of `least` or more.
  std::optional<std::uint32_t> row_of_empty(double least, std::uint32_t bits);
  // Where all rows are here.
  virtual void draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                                std::uint32_t bits, Team& team);
  virtual void draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                             std::uint32_t bits, Team& team);
  LossRows loss_rows(const double* scores) const {
    const RoundTarget& rows = target();
    return {rows.y, rows.weight, scores, rows.n_rows, rows.outputs};
  }

  RoundSettings settings_;
  Sample sample_;

 private:
  Alone alone_;
  std::optional<Gradients> gradients_[2];  // [least_squares]
};

}  // namespace arboost
