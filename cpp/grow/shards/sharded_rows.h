// Rows in k parts of one process, each held by a worker of its own: the tree is the same as in
// memory, for any parts.
//
// The smallest cluster: workers are threads, and share nothing but the sums that they exchange.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grow/policy/node_rows.h"
#include "grow/rows/workspace.h"
#include "grow/shards/thread_workers.h"
#include "grow/shards/worker_rows.h"

namespace arboost {

class ShardedRows final : public NodeRows {
 public:
  // The training rows, as MemoryRows takes them, in consecutive parts. Parts are in proportion to
  // the given `parts`, of which some may be 0. The policy is that of the first worker.
  ShardedRows(const Codes& codes, std::span<const RowId> table_rows, std::span<const double> parts,
              TreePolicy& policy, Workspace& workspace);
  ~ShardedRows() override;

  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  void grow(TreePolicy& policy, Team& team) override;
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override;
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team) override;
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const override;
  const TreeRows& tree_rows() const override { return tree_rows_; }
  TreeRows training_rows() const override {
    return {rows_.size(), nullptr, is_whole_ ? nullptr : rows_.data()};
  }
  const std::uint32_t* leaves() const override { return space_.leaf_of_row.data(); }

 private:
  struct Part;
  Part& part(std::size_t rank) { return *parts_[rank]; }
  // Runs body(part, policy, team) in all workers.
  template <class Body>
  void run(Team& team, Body body);
  void take_gradients(Part& part, const Gradients& gradients) const;
  void take_sample(Part& part, const Sample& sample) const;

  TreePolicy& policy_;
  Workspace& space_;
  bool is_whole_;            // all rows of the table are training rows
  std::vector<RowId> rows_;  // training rows of the table
  ThreadWorkers workers_;
  std::vector<std::unique_ptr<Part>> parts_;
  TreeRows tree_rows_{};
};

}  // namespace arboost
