// Batches of nodes whose rows are divided among workers: sums are added up before every search.
//
// All workers grow the same tree: they take the same batches of nodes, divide their own rows, and
// add up numbers of rows and histograms, in one exchange a batch. Each worker gets the sums of some
// stored columns, searches their features, and sends its best splits to the others, in another one;
// or, where that is fewer bytes or the batch is small, all get all sums and search all features, in
// one. Histograms are added before those of the larger children are subtracted from their parents'.
// Searches from few rows give the same splits as histograms, so nodes of any size have histograms
// here.
//
// With voting, histograms are not added up: workers propose features by their own rows, and the
// sums of those with most votes are (grow/shards/feature_votes.h). The tree then depends on the
// workers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/collective.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/histograms.h"
#include "grow/rows/value_bounds.h"
#include "grow/shards/feature_votes.h"
#include "grow/split/split_search.h"

namespace arboost {

// The rows of a tree in this worker, which batches divide and add up, wherever they are.
class BatchRows {
 public:
  virtual ~BatchRows() = default;
  virtual std::size_t n_tree_rows() const = 0;
  // Adds the rows of the root to its histogram, which is 0, and sets its sums.
  virtual void build_root(GrowNode& root, Team& team) = 0;
  // Divides nodes, whose children are open, and adds the rows of children to their histograms,
  // which are 0 where there are any. Returns how many rows of each node went left; of a node
  // without a histogram to build it may be 0.
  virtual std::vector<std::int64_t> divide(std::span<GrowNode* const> nodes,
                                           std::span<GrowNode* const> built, Team& team) = 0;
  // Bounds of the target values of nodes, [node][output], for trees that end at pure ones.
  virtual std::vector<ValueBounds> value_bounds(std::span<GrowNode* const> nodes) = 0;
};

// All workers keep as many histograms as the one that has least memory.
std::size_t agreed_bytes(std::size_t bytes, Collective& workers);

class WorkerBatches final : public NodeBatches {
 public:
  // `search` reads `histograms`. `n_votes`: features that each worker proposes for a node; 0: no
  // voting.
  WorkerBatches(const Codes& codes, TreePolicy& policy, Histograms& histograms, SplitSearch& search,
                Collective& workers, std::size_t n_votes, BatchRows& rows);

 private:
  // Children of a node of a batch, by the hessians of their rows: one is added up, the other is the
  // difference to the node where that has a histogram.
  struct Siblings {
    GrowNode *node, *smaller, *larger;
    bool subtracts;
  };
  void open_root(TreePolicy& policy, Team& team) override;
  std::size_t batch_size() const override;
  void expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) override;
  void forget(GrowNode& node) override;

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
  std::vector<bool> may_split(std::span<GrowNode* const> nodes) const;

  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  Histograms& histograms_;
  SplitSearch& search_;
  Collective& workers_;
  BatchRows& rows_;
  // Numbers of a histogram whose sums each worker has, [bounds_[rank], bounds_[rank + 1]); empty:
  // all have all.
  std::vector<std::size_t> bounds_;
  std::vector<std::uint8_t> is_own_;     // features of these parts
  std::unique_ptr<FeatureVotes> votes_;  // null: no voting
};

}  // namespace arboost
