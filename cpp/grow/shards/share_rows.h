// The training rows of a table that is divided among workers, as one of them sees them.
//
// Outside, positions are those among all training rows: gradients, samples, scores and leaves are
// arrays of all rows, which every worker has. Inside, a worker grows the trees on its own rows
// (grow/shards/worker_rows.h). Rounds of boosting that need no other rows compute scores and
// gradients of the worker's own rows alone; `fetch_scores` brings those of all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grow/policy/node_rows.h"
#include "grow/rows/workspace.h"
#include "grow/shards/worker_rows.h"
#include "table/shared_codes.h"

namespace arboost {

class ShareRows final : public NodeRows {
 public:
  // `grown_on`: the codes of this worker's rows that trees grow on; their splits refer to `codes`.
  // `table_rows`: the training rows among those of all workers, ascending; empty for all of them.
  ShareRows(const SharedCodes& codes, const Codes& grown_on, std::span<const RowId> table_rows,
            TreePolicy& policy, Workspace& workspace);

  // Gradients and sample of all training rows, or both of the worker's own, as `own_gradients` and
  // `draw_own` have them.
  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  void grow(TreePolicy& policy, Team& team) override { rows_->grow(policy, team); }
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override;
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team) override;
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const override;
  const TreeRows& tree_rows() const override { return tree_rows_; }
  TreeRows training_rows() const override {
    return {n_training_, nullptr, table_rows_.empty() ? nullptr : table_rows_.data()};
  }
  // Those of all workers, gathered when first asked for.
  const std::uint32_t* leaves() const override;
  ShareRows* shared() override { return this; }
  void read_hessians(const Gradients& gradients, std::uint32_t* hessians, Team& team) override {
    rows_->read_hessians(of_own(gradients), hessians, team);
  }

  // ---- the worker's own rows, for rounds that need no others ----
  Collective& workers() const { return codes_.workers; }
  LossRows own_rows(const LossRows& rows) const;
  // Sets the same scores for every row of this worker; `fetch_scores` brings those of others.
  void start_scores(std::span<const double> of_row, double* scores);
  Gradients& own_gradients(std::size_t outputs, bool by_row);
  void draw_own(double rate, std::uint32_t bits, Sample& out, Team& team) const;
  // Adds the values of the last tree, or of any, to the scores of the worker's own rows.
  void add_own(const GrownTrees& forest, ScoreRows scores, Team& team);
  void add_own(const GrownTrees& forest, std::size_t tree, ScoreRows scores, Team& team);
  // Brings the scores of all rows, after rounds of own rows only.
  void fetch_scores(std::size_t outputs, double* scores);

 private:
  const Gradients& of_own(const Gradients& gradients);
  void take_sample(const Sample& sample);
  std::vector<std::uint32_t> leaves_of_own(const GrownTrees& forest, Team& team) const;

  const SharedCodes codes_;
  Workspace& space_;
  std::vector<RowId> table_rows_;  // empty: all
  std::size_t n_training_;
  SharedCodes::Range own_;  // this worker's training rows, by position
  Codes none_;              // the table of a worker none of whose rows is a training row
  std::unique_ptr<WorkerRows> rows_;
  TreeRows tree_rows_{};
  Sample sample_;
  std::unique_ptr<Gradients> gradients_;  // of own rows
  const GrownTrees* forest_ = nullptr;    // of the last tree
  bool has_own_scores_ = false;           // scores of other rows are old
  mutable bool has_leaves_ = false;
  mutable Buffer<std::uint32_t> leaves_;  // by table row
};

}  // namespace arboost
