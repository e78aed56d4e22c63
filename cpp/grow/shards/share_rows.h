// The training rows of a table that is divided among workers, as one of them sees them.
//
// Outside, positions are those among all training rows: gradients, samples, scores and leaves are
// arrays of all rows, which every worker has. Inside, a worker grows the trees on the rows that it
// holds, in memory or in a file (grow/shards/worker_rows.h) or on a device
// (grow/device/device_rows.h). Rounds of boosting that need no other rows compute scores and
// gradients of these alone (grow/shards/worker_round.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grow/policy/node_rows.h"
#include "table/shared_codes.h"

namespace arboost {

class ShareRows final : public NodeRows {
 public:
  // The rows that this worker holds: `grown_on` has the codes that trees grow on, whose splits
  // refer to `table`. Both are of the same rows, of which some are training rows; none listed: all.
  using MakeRows = FunctionRef<std::unique_ptr<NodeRows>(const Codes& table, const Codes& grown_on,
                                                         std::span<const RowId> table_rows)>;
  // `grown_on`: of this worker's rows. `table_rows`: the training rows among those of all workers,
  // ascending; empty for all of them.
  ShareRows(const SharedCodes& codes, const Codes& grown_on, std::span<const RowId> table_rows,
            MakeRows make_rows);

  // Gradients and sample of all training rows, or both of this worker's.
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
  void propose(Proposal& proposal, const Gradients& gradients, Team& team) override {
    rows_->propose(proposal, local_gradients(gradients), team);
  }
  std::unique_ptr<RoundRows> make_round(const RoundSettings& settings) override;

  // ---- this worker's part of the training rows ----
  const SharedCodes& codes() const { return codes_; }
  const SharedCodes::Range& range() const { return range_; }
  NodeRows& local_rows() { return *rows_; }

 private:
  bool are_local(const Gradients& gradients) const { return gradients.n_rows == range_.size(); }
  const Gradients& local_gradients(const Gradients& gradients);
  void take_sample(const Sample& sample);
  std::vector<std::uint32_t> leaves_of_range(const GrownTrees& forest, Team& team) const;

  const SharedCodes codes_;
  std::vector<RowId> table_rows_;  // empty: all
  std::size_t n_training_;
  SharedCodes::Range range_;  // this worker's training rows, by position
  Codes none_;                // the table of a worker none of whose rows is a training row
  std::unique_ptr<NodeRows> rows_;
  TreeRows tree_rows_{};
  Sample sample_;
  std::optional<Gradients> gradients_;  // of this worker's rows, taken from those of all
  const GrownTrees* forest_ = nullptr;  // of the last tree
  mutable bool has_leaves_ = false;
  mutable Buffer<std::uint32_t> leaves_;  // by table row
};

}  // namespace arboost
