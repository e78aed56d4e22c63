// Rows of a table in a file: a batch of nodes is one pass over them. The rows of a sample that fits
// in memory are copied there first, and their tree grows without a pass.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/collective.h"
#include "grow/memory/memory_rows.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/workspace.h"
#include "grow/shards/worker_rows.h"

namespace arboost {

class FileRows final : public NodeRows {
 public:
  // As MemoryRows takes them.
  FileRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
           TreePolicy& policy, Workspace& workspace);

  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  void grow(TreePolicy& policy, Team& team) override { rows().grow(policy, team); }
  std::span<const SubtreeNodes* const> subtrees() const override { return rows().subtrees(); }
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override;
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team) override {
    return rows().sums_of(shape, gradients, output, team);
  }
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const override;
  const TreeRows& tree_rows() const override { return rows().tree_rows(); }
  TreeRows training_rows() const override { return streamed_.training_rows(); }
  const std::uint32_t* leaves() const override { return rows().leaves(); }

 private:
  // The sample of a tree in memory. Its rows are those of a table of their own; their positions
  // among the training rows stay.
  struct Gathered {
    Codes codes;
    std::unique_ptr<MemoryRows> rows;
  };
  bool fits(const Sample& sample) const;
  void gather(const Sample& sample, Team& team);
  NodeRows& rows() { return gathered_ ? static_cast<NodeRows&>(*gathered_->rows) : streamed_; }
  const NodeRows& rows() const {
    return gathered_ ? static_cast<const NodeRows&>(*gathered_->rows) : streamed_;
  }

  const Codes &table_, &codes_;
  TreePolicy& policy_;
  Workspace& space_;
  Alone alone_;
  WorkerRows streamed_;
  std::unique_ptr<Gathered> gathered_;  // null: the tree's rows are in the file
  std::vector<RowId> place_;            // by position: the row in the gathered table, if any
};

}  // namespace arboost
