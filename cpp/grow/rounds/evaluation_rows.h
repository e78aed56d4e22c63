// Evaluation sets of a fit: codes, targets and scores, to which the trees of each round are added,
// and their losses.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/parallel.h"
#include "grow/trees/grown_trees.h"
#include "grow/trees/kept_leaves.h"
#include "loss/apply.h"
#include "table/codes.h"

namespace arboost {

class EvaluationRows {
 public:
  // Targets, weights and start scores; the first two must live as long.
  explicit EvaluationRows(const LossRows& rows) : rows_(rows) {}
  virtual ~EvaluationRows() = default;
  EvaluationRows(const EvaluationRows&) = delete;
  EvaluationRows& operator=(const EvaluationRows&) = delete;

  std::size_t n_rows() const { return rows_.n_rows; }
  std::size_t outputs() const { return rows_.outputs; }

  // Adds n trees of a forest times a factor; those of a round follow each other in the order of
  // their outputs.
  virtual void add(const GrownTrees& forest, std::size_t first, std::size_t n, double factor,
                   Team& team) = 0;
  // Starts the computation of the weighted mean loss at the scores so far.
  virtual void start_loss(const LossSpec& spec, Team& team) = 0;
  // The losses since the last call, in the order of their starts.
  virtual std::vector<double> losses() = 0;
  virtual void set_scores(const double* scores) = 0;
  // In the memory of this process, until the next change.
  virtual const double* scores() = 0;

 protected:
  LossRows rows_;
};

// Rows of a table in this process, in memory or in a file.
class HostEvaluation : public EvaluationRows {
 public:
  // All rows of the table, or those of an index, ascending; the codes must live as long.
  // `adds_repeatedly`: trees are added again and again.
  HostEvaluation(const Codes& codes, std::span<const RowId> table_rows, const LossRows& rows,
                 bool adds_repeatedly);

  void add(const GrownTrees& forest, std::size_t first, std::size_t n, double factor,
           Team& team) override;
  void start_loss(const LossSpec& spec, Team& team) override;
  std::vector<double> losses() override;
  void set_scores(const double* scores) override;
  const double* scores() override { return scores_.data(); }

 protected:
  virtual void add_tree(const GrownTrees& forest, std::size_t tree, double factor, ScoreRows scores,
                        Team& team);

  const Codes& codes_;
  std::vector<RowId> table_rows_;
  bool adds_repeatedly_;
  Buffer<double> scores_;
  std::vector<double> losses_;
  KeptLeaves kept_leaves_;
};

}  // namespace arboost
