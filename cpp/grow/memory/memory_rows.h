// Rows in the memory of one process, grown by threads.
//
// Node by node: take the best open node, partition its rows, build the smaller child's histogram,
// subtract it from the parent's for the larger child, search both for their best splits, and report
// them to the policy. Ranks have no histograms (grow/rows/sorted_columns.h), or those of bins
// proposed for a round (bin/propose.h). Threads expand several nodes concurrently, ahead of the
// tree, and share the rows of large nodes.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "base/collective.h"
#include "bin/rank.h"
#include "grow/memory/subtrees.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/absolute.h"
#include "grow/rows/histograms.h"
#include "grow/rows/leaf_sizes.h"
#include "grow/rows/purity.h"
#include "grow/rows/row_leaves.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/sorted_columns.h"
#include "grow/split/split_search.h"

namespace arboost {

class MemoryRows final : public NodeRows {
 public:
  // `codes` are grown on; splits of grown trees refer to `table`, of the same rows. Rows are sorted
  // by the codes, instead of histograms, where these are the `ranks`, or candidates are per node.
  MemoryRows(const Codes& table, const Codes& codes, const Ranks* ranks,
             std::span<const RowId> table_rows, TreePolicy& policy, Workspace& workspace);

  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  void grow(TreePolicy& policy, Team& team) override;
  std::span<const SubtreeNodes* const> subtrees() const override { return subtrees_.grown(); }
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override {
    return leaves_.finish(shape, forest, gradients, output, request.leaves_from_all_rows, team);
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
  void set_small_rows();
  std::size_t subtree_rows(int n_threads) const;
  void start_root(Team& team);
  void work(int member, Team& team);
  GrowNode* next_node(int member, Team& team);
  void find_splits(GrowNode& node, int member, Team& team);
  void find_splits_sorted(GrowNode& node, int member, Team& team);
  void forget_histogram(GrowNode& node);
  bool may_split(const GrowNode& node) const {
    return policy_.may_split(node) &&
           !(purity_ && purity_->is_pure(rows_.elements(node), node.n_rows()));
  }
  bool is_small(const GrowNode& node) const { return node.n_rows() <= small_rows_; }

  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  Alone alone_;
  RowPartition rows_;
  std::unique_ptr<Purity> purity_;          // null: purity is not tested
  bool values_tell_purity_ = false;         // exact values suffice to test it
  std::unique_ptr<AbsoluteRows> absolute_;  // null: scores come from sums
  std::unique_ptr<SortedColumns> sorted_;   // all values, or candidates for each node, else null
  LeafSizes sizes_;
  Histograms histograms_;
  SplitSearch search_;
  Subtrees subtrees_;
  RowLeaves leaves_;
  std::size_t small_rows_ = 0;  // largest node that is searched without a histogram
  std::atomic<bool> failed_{false};
  std::atomic<std::size_t> n_expanding_{0};
};

}  // namespace arboost
