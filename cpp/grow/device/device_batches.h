// Nodes of a tree in batches on a device: a launch for each stage of a batch, and one answer.
//
// The host decides the policy from a few numbers of each node. Splits of tables whose features all
// have stored columns of their own, without categories, are searched on the device; histograms of
// others are copied to the host and searched there. So are all histograms where workers divide the
// rows among them, after the workers have added them up (grow/shards/worker_batches.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/collective.h"
#include "cuda/device.h"
#include "grow/device/records/device_records.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/histograms.h"
#include "grow/rows/leaf_sizes.h"
#include "grow/rows/row_partition.h"
#include "grow/shards/worker_batches.h"
#include "grow/split/split_search.h"

namespace arboost::cuda {

struct DeviceState;
struct DeviceTree;

class DeviceBatches final : private NodeBatches, private BatchRows {
 public:
  DeviceBatches(DeviceState& state, const Codes& codes, TreePolicy& policy, Workspace& workspace,
                Collective& workers, std::size_t n_votes);

  // Starts a tree on as many rows of all workers; returns which of its rows are counted.
  const LeafSizes& start_tree(std::size_t all_rows);
  void grow(TreePolicy& policy, const DeviceTree& tree, Team& team);
  const SplitSearch& search() const { return search_; }

 private:
  struct Batch;
  struct ColumnStorage {
    std::uint32_t first_slot = 0, usual = no_code;
    std::vector<std::uint8_t> own_codes;  // by slot; empty: slots are by code
  };

  void open_root(TreePolicy& policy, Team& team) override;
  std::size_t batch_size() const override;
  void expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) override;
  void forget(GrowNode& node) override;
  // For workers, whose nodes have histograms in the memory of the host.
  std::size_t n_tree_rows() const override;
  void build_root(GrowNode& root, Team& team) override;
  std::vector<std::int64_t> divide(std::span<GrowNode* const> nodes,
                                   std::span<GrowNode* const> built, Team& team) override;
  std::vector<ValueBounds> value_bounds(std::span<GrowNode* const> nodes) override;

  ColumnStorage storage_of(std::size_t feature) const;
  void send_columns();
  std::int64_t* acquire();
  void free_histograms();
  void plan_histograms(std::size_t n_rows, BatchWork& work);
  void launch_histograms(const BatchWork& work);
  void launch_root(std::int64_t* histogram, Batch& batch);
  void launch_partition(const Batch& batch, std::size_t clear_blocks);
  NodeWork& open_work(const GrowNode& node, Batch& batch) const;
  Batch open_batch(TreePolicy& policy, std::span<GrowNode* const> nodes);
  void send(Batch& batch);
  void request(GrowNode& node, std::uint32_t work, std::uint32_t side, Batch& batch);
  void launch_searches(const Batch& batch);
  void take_splits(const Batch& batch);
  bool is_in_doubt(const GrowNode& node, const FoundSplit& split) const;
  void search_in_doubt();
  using UseHistogram = FunctionRef<void(std::size_t, std::int64_t*, int)>;
  void each_histogram(std::span<const std::int64_t* const> on_device, UseHistogram use, Team& team);
  void search_on_host(std::span<GrowNode* const> nodes, Team& team);
  // The nodes that may be split: without those whose rows all have the same target, for CART.
  std::vector<GrowNode*> impure(std::vector<GrowNode*> nodes);

  DeviceState& state_;
  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  bool searches_on_device_;  // else histograms are searched here
  bool is_mixed_ = false;    // some features are categories, share stored columns or have many bins
  Collective& workers_;
  RowPartition host_rows_;  // without rows: searches on the host read histograms only
  LeafSizes sizes_;
  Histograms slots_;  // the layout of histograms, and one of them
  SplitSearch search_;
  std::optional<WorkerBatches> shared_;  // none: all rows are here
  ColumnSampler::Scratch columns_;
  const DeviceTree* tree_ = nullptr;  // that grows
  std::vector<GrowNode*> in_doubt_;   // whose best split may have too few rows on a side

  DeviceArray<std::uint32_t> first_slot_;
  DeviceArray<FeatureColumn> feature_columns_;
  DeviceArray<GroupColumn> groups_;                    // of grouped categories
  DeviceArray<std::uint8_t> own_codes_;                // of features that share stored columns
  std::vector<DeviceArray<std::int64_t>> histograms_;  // a block of several each
  std::vector<std::int64_t*> free_;
  std::size_t in_use_ = 0;

  DeviceArray<std::byte> batch_;
  DeviceArray<Segment> segments_;
  DeviceArray<FoundSplit> splits_;
  DeviceArray<std::int64_t> parts_, built_;  // built_: histograms of a while
  DeviceArray<RowRange> ranges_;
  DeviceArray<ValueBounds> bounds_;
  PinnedBytes sent_batches_[2], answers_;
  int which_batch_ = 0;  // of those that are staged
};

}  // namespace arboost::cuda
