// Column sampling: the features that a node may split on, drawn for its tree, its level and itself,
// and restricted by interaction constraints.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "grow/trees/grow_node.h"
#include "grow/trees/tree_params.h"

namespace arboost {

// Number of features that are drawn from n: a share of them, at least one.
inline std::size_t draw_size(double rate, std::size_t n) {
  constexpr double slack = 1e-9;  // 0.29 * 100 is meant to be 29
  const auto share = static_cast<std::size_t>(rate * static_cast<double>(n) + slack);
  return std::clamp<std::size_t>(share, 1, n);
}

class ColumnSampler {
 public:
  ColumnSampler(const TreeParams& params, std::size_t n_features);

  // True when trees use only some of the features.
  bool samples_trees() const { return params_.colsample_bytree < 1; }

  void start_tree(std::uint64_t seed, std::uint64_t tree, std::uint64_t turn);
  std::span<const std::uint32_t> of_tree() const { return tree_; }  // ascending

  // Scratch memory of one thread.
  struct Scratch {
    std::vector<std::uint32_t> features, allowed;
    std::vector<std::uint64_t> ranks;
  };

  // The features that the node may split on, in the tree's rotated order. Thread-safe.
  std::span<const std::uint32_t> of_node(const GrowNode& node, Scratch& scratch);
  // The same without interaction constraints: depth and path of a node suffice.
  std::span<const std::uint32_t> of_node(std::int64_t depth, std::uint64_t path, Scratch& scratch);

  // The features that the node has not drawn, in random order. Thread-safe.
  std::vector<std::uint32_t> rest_of_node(const GrowNode& node);

  // Sets the child's interaction groups: those that contain all features on its path.
  void open_groups(const GrowNode& parent, GrowNode& child) const;
  void open_groups(GrowNode& root) const;

 private:
  std::span<const std::uint32_t> of_level(std::int64_t depth);
  // The features of the node's level that the constraints allow on its path; `allowed` is scratch.
  std::span<const std::uint32_t> of_path(const GrowNode& node, std::vector<std::uint32_t>& allowed);
  void turn(std::vector<std::uint32_t>& features) const;
  bool restricts() const { return !params_.interactions.empty(); }
  std::span<const std::uint32_t> draw_for(std::span<const std::uint32_t> from, std::uint64_t path,
                                          Scratch& scratch) const;

  const TreeParams& params_;
  std::size_t n_features_;
  std::uint64_t seed_ = 0, number_ = 0, turn_ = 0;
  std::vector<std::uint32_t> tree_, in_turn_;
  std::mutex mutex_;                               // guards levels_
  std::deque<std::vector<std::uint32_t>> levels_;  // by depth, as far as they were asked for
};

}  // namespace arboost
