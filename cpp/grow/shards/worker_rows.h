// The rows of one worker, in memory or in a file: batches of nodes (grow/shards/worker_batches.h)
// are divided and added up here.
//
// A batch is one pass over the worker's rows, window by window, in memory or from a file: each
// window is divided, and the rows of its new nodes are added to histograms, while it is there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/collective.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/histograms.h"
#include "grow/rows/leaf_sizes.h"
#include "grow/rows/purity.h"
#include "grow/rows/row_leaves.h"
#include "grow/rows/row_partition.h"
#include "grow/shards/worker_batches.h"
#include "grow/split/split_search.h"

namespace arboost {

class WorkerRows final : public NodeRows, private BatchRows {
 public:
  // `codes` are grown on; splits of grown trees refer to `table`, of the same rows.
  // `table_rows`: the worker's training rows among those of the codes, ascending; empty: all.
  // Splits of absolute errors need all rows in the memory of one process. `n_votes`: features that
  // each worker proposes for a node; 0: no voting.
  WorkerRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
             TreePolicy& policy, Workspace& workspace, Collective& workers,
             std::size_t n_votes = 0);

  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  void grow(TreePolicy& policy, Team& team) override;
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override {
    return leaves_.finish(shape, forest, gradients, output, request.leaves_from_all_rows, team);
  }
  // The same of a tree that has grown elsewhere, for all training rows.
  LeafSums walk_all(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                    std::size_t output, Team& team) {
    return leaves_.walk_all(shape, forest, gradients, output, team);
  }
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team) override {
    return leaves_.sums_of(shape, gradients, output, team);
  }
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const override {
    leaves_.add_values(forest, scores, team);
  }
  const TreeRows& tree_rows() const override { return rows_.rows(); }
  TreeRows training_rows() const override { return rows_.training_rows(); }
  const std::uint32_t* leaves() const override { return leaves_.leaves(); }

 private:
  std::size_t n_tree_rows() const override { return rows_.rows().n; }
  void build_root(GrowNode& root, Team& team) override;
  std::vector<std::int64_t> divide(std::span<GrowNode* const> nodes,
                                   std::span<GrowNode* const> built, Team& team) override;
  std::vector<ValueBounds> value_bounds(std::span<GrowNode* const> nodes) override;
  void pass(std::span<GrowNode* const> divided, std::span<GrowNode* const> built, Team& team);

  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  Collective& workers_;
  RowPartition rows_;
  std::unique_ptr<Purity> purity_;  // null: purity is not tested
  LeafSizes sizes_;
  Histograms histograms_;
  SplitSearch search_;
  WorkerBatches batches_;
  RowLeaves leaves_;
};

}  // namespace arboost
