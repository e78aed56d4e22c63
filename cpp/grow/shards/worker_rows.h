// The rows of one worker: each holds some of the rows, and their sums are added before every
// search.
//
// All workers grow the same tree: they take the same batches of nodes, divide their own rows, and
// add up numbers of rows and histograms, in one exchange a batch. Each worker gets the sums of some
// stored columns, searches their features, and sends its best splits to the others, in another one;
// or, where that is fewer bytes or the batch is small, all get all sums and search all features, in
// one. Histograms are added
// before those of the larger children are subtracted from their parents'. Searches from few rows
// give the same splits as histograms, so nodes of any size have histograms here.
//
// With voting, histograms are not added up: workers propose features by their own rows, and the
// sums of those with most votes are (grow/shards/feature_votes.h). The tree then depends on the
// workers.
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
#include "grow/shards/feature_votes.h"
#include "grow/split/split_search.h"

namespace arboost {

class WorkerRows final : public NodeRows, private NodeBatches {
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
  void grow(TreePolicy& policy, Team& team) override { grow_by_batches(policy, team); }
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

 protected:
  void open_root(TreePolicy& policy, Team& team) override;
  std::size_t batch_size() const override;
  void expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) override;
  void forget(GrowNode& node) override;

 private:
  // Children of a node of a batch, by the hessians of their rows: one is added up, the other is the
  // difference to the node where that has a histogram.
  struct Siblings {
    GrowNode *node, *smaller, *larger;
    bool subtracts;
  };
  void add_up(GrowNode& root, Team& team) const;
  void divide_columns();
  bool sums_all(std::span<GrowNode* const> built, bool from_whole) const;
  void sum_histograms(std::span<GrowNode* const> built, bool all, Collective::Numbers numbers);
  void search(std::span<GrowNode* const> nodes, Team& team);
  void share_splits(std::span<GrowNode* const> nodes);
  std::vector<std::vector<std::uint32_t>> elect(std::span<GrowNode* const> nodes);
  void search_elected(std::span<GrowNode* const> nodes, Team& team);
  void take_split(GrowNode& node, const struct SplitRecord& record,
                  std::span<const std::int64_t> left_sums) const;
  bool may_ever_split(const GrowNode& node) const;
  Siblings open_children(TreePolicy& policy, GrowNode& node);
  void pass(std::span<GrowNode* const> divided, std::span<GrowNode* const> built, Team& team);
  std::vector<std::int64_t> left_rows(std::span<GrowNode* const> batch) const;
  std::vector<bool> may_split(std::span<GrowNode* const> nodes) const;

  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  Collective& workers_;
  RowPartition rows_;
  std::unique_ptr<Purity> purity_;  // null: purity is not tested
  LeafSizes sizes_;
  Histograms histograms_;
  SplitSearch search_;
  RowLeaves leaves_;
  // Numbers of a histogram whose sums each worker has, [bounds_[rank], bounds_[rank + 1]); empty:
  // all have all.
  std::vector<std::size_t> bounds_;
  std::vector<std::uint8_t> is_own_;     // features of these parts
  std::unique_ptr<FeatureVotes> votes_;  // null: no voting
};

}  // namespace arboost
