// Nodes of a finished tree: their order, splits and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grow/policy/tree_policy.h"
#include "grow/trees/grown_trees.h"

namespace arboost {

// A node of a subtree that one thread has grown at once (grow/memory/subtrees.h).
struct SubtreeNode {
  double gain = -1;          // of its split, in units; below 0: it is a leaf
  std::uint32_t begin, end;  // its elements, in the buffer of the node that the subtree began with
  std::uint32_t left = 0;    // offset of its left child; the right one follows
  std::uint32_t bin = 0;
  std::int32_t feature = 0;
  std::int32_t set = -1;  // which of the member's sets, or -1
  bool missing_left = false;
};

// The subtrees that one member has grown in a tree.
struct SubtreeNodes {
  std::vector<SubtreeNode> nodes;
  std::vector<CodeSet> sets;
};

// Sums [node][output][g, h] of fixed-point gradients: value = integer * 2^-exponent.
struct LeafSums {
  std::vector<std::int64_t> sums;
  int g_exponent, h_exponent;
};

class TreeShape {
 public:
  struct Placed {              // a node in its place in the tree
    const GrowNode* node;      // the node itself, or the one that its subtree began with
    const SubtreeNode* below;  // the node, where it is of a subtree

    double gain() const { return below != nullptr ? below->gain : node->gain; }
  };

  // Assigns all nodes their order. `subtrees`, by member, is empty where no subtree was grown; its
  // nodes get the same order as if they had passed the queue.
  void order(const TreePolicy& policy, std::span<const SubtreeNodes* const> subtrees);

  std::size_t size() const { return left_.size(); }
  // By id: nodes, and their left children or 0.
  const std::vector<Placed>& placed() const { return placed_; }
  const std::vector<std::int32_t>& left() const { return left_; }

  // Appends the tree without its values; trees store stored_bin(feature, bin) of a split.
  using BinOf = FunctionRef<std::uint32_t(std::size_t, std::uint32_t)>;
  void append_splits(const TreePolicy& policy, BinOf stored_bin, GrownTrees& forest) const;

  // Sets the values of the last tree.
  void set_values(const TreePolicy& policy, const LeafSums& sums, double rate,
                  GrownTrees& forest) const;

 private:
  struct SplitOf {
    std::int32_t feature;
    std::uint32_t bin;
    bool missing_left;
    double gain;
    const CodeSet* set;  // null: by bin
  };
  SplitOf split_of(const Placed& placed) const;
  Placed place(const GrowNode* node) const;
  void place_children(std::size_t id);
  void order_by_level(std::int64_t splits_left);
  void order_by_gain(std::int64_t splits_left);

  std::span<const SubtreeNodes* const> subtrees_;
  std::vector<Placed> placed_;
  std::vector<std::int32_t> left_;
};

}  // namespace arboost
