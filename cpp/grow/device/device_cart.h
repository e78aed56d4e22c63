// CART trees that grow on a device as a whole, level by level: a few launches and one wait a level.
//
// Nodes draw few features, so no histogram is kept: every node is searched from its own rows, and
// the host sees a level's number of nodes only. Subtrees of small nodes take no further level.
#pragma once

#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "cuda/device.h"
#include "grow/device/device_means.h"
#include "grow/device/records/device_tree_records.h"
#include "grow/policy/tree_policy.h"
#include "grow/policy/tree_shape.h"
#include "grow/split/split_search.h"

namespace arboost::cuda {

struct DeviceState;
struct DeviceTree;

class DeviceCart {
 public:
  // True for trees that grow in this way: CART in level order, without limit of leaves and without
  // constraints, on features of up to 255 bins without sparse columns and groups of levels.
  static bool grows(const Codes& codes, const TreePolicy& policy);

  DeviceCart(DeviceState& state, const Codes& codes, const TreePolicy& policy,
             const SplitSearch& search);

  // Grows a tree from its root, whose rows are in the first array of elements.
  void grow(TreePolicy& policy, const DeviceTree& tree, Team& team);

  const SubtreeNodes& grown() const { return grown_; }
  // Sums of the pairs [node][output][g, h] in the leaves of the tree that has grown; 0 elsewhere.
  std::vector<std::int64_t> leaf_sums(const TreeShape& shape, const PairRows& pairs);
  // NodeRows::target_sums of it; `counts` are those of its sample, or null. Needs memory for a leaf
  // number of each row of the table. The tree's elements are lost.
  std::vector<double> target_sums(const TreeShape& shape, const LeafTarget& target,
                                  const float* counts, std::uint32_t* leaf_of_row,
                                  DeviceMeans& means);
  // The leaves of the training rows outside of its sample, by position, and no_number inside; and
  // their numbers here -> nodes of the tree.
  void walk_outside(std::size_t n_training, std::uint32_t* leaf_of_position);
  void renumber(const TreeShape& shape, std::vector<std::uint32_t>& leaves) const;

 private:
  // Nodes of one of two levels that may be split.
  struct LevelScratch {
    DeviceArray<OpenNode> open;
    DeviceArray<std::int64_t> sums;
    DeviceArray<RowTile> tiles;
    std::size_t capacity = 0;
  };

  void open_root(const GrowNode& root, bool may_split, std::int64_t max_depth);
  TreeWork work_of(const TreePolicy& policy, const TreeRequest& request) const;
  void grow_level(TreeWork& work);
  void grow_large(TreeWork& work);
  void grow_small(const TreeWork& work);
  void take_counts();
  void receive(Address from, std::size_t bytes);
  void take_nodes();
  Queue::Grid leaf_tiles() const;
  template <class Sum>
  std::vector<Sum> by_node(const TreeShape& shape, const Sum* sums, std::size_t per_node) const;

  DeviceState& state_;
  const Codes& codes_;
  std::size_t histogram_bytes_;
  DeviceArray<TreeColumn> columns_;
  DeviceArray<std::uint8_t> own_codes_;
  DeviceArray<double> edges_, cut_values_;
  DeviceArray<TreeNode> nodes_;
  DeviceArray<CodeSet> sets_;
  bool has_sets_ = false;  // some feature is a category
  DeviceArray<TreeCounts> counts_;
  TreeCounts found_{};
  TreeWork work_{};  // of the last tree
  LevelScratch levels_[2];
  DeviceArray<OpenNode> small_;
  DeviceArray<std::int64_t> left_sums_, large_sums_, histograms_;
  DeviceArray<std::uint16_t> drawn_;
  DeviceArray<LargeNode> large_;
  DeviceArray<FoundCut> cuts_;
  PinnedBytes received_;
  SubtreeNodes grown_;
  std::size_t largest_leaf_ = 0;  // rows
  DeviceArray<std::int64_t> leaf_sums_;
};

}  // namespace arboost::cuda
