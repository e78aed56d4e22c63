// Grown nodes -> their final order in the tree, its splits and values. O(n log n) in nodes;
// single-threaded.
#include "grow/policy/tree_shape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>  // pair

#include "base/types.h"  // prefetch

namespace arboost {
namespace {

constexpr std::size_t ahead = 16;  // nodes; those of subtrees are in another order

// Priority queue of nodes: largest gain first, ties by age.
class ByGain {
 public:
  void add(double gain, std::size_t id) {
    heap_.emplace_back(gain, -static_cast<std::int64_t>(id));
    std::push_heap(heap_.begin(), heap_.end());
  }
  bool empty() const { return heap_.empty(); }
  std::size_t take() {
    std::pop_heap(heap_.begin(), heap_.end());
    const auto id = static_cast<std::size_t>(-heap_.back().second);
    heap_.pop_back();
    return id;
  }

 private:
  std::vector<std::pair<double, std::int64_t>> heap_;
};

}  // namespace

TreeShape::Placed TreeShape::place(const GrowNode* node) const {
  if (node->subtree_of < 0) return {node, nullptr};
  const SubtreeNodes& member = *subtrees_[static_cast<std::size_t>(node->subtree_of)];
  return {node, member.nodes.data() + node->subtree};
}

TreeShape::SplitOf TreeShape::split_of(const Placed& placed) const {
  const auto [node, below] = placed;
  if (below == nullptr) {
    const FeatureSplit& split = node->split;
    return {node->feature, split.bin, split.missing_left, node->gain,
            split.by_set ? &split.left : nullptr};
  }
  const SubtreeNodes& member = *subtrees_[static_cast<std::size_t>(node->subtree_of)];
  return {below->feature, below->bin, below->missing_left, below->gain,
          below->set < 0 ? nullptr : &member.sets[static_cast<std::size_t>(below->set)]};
}

// Appends the children of a node.
void TreeShape::place_children(std::size_t id) {
  const Placed at = placed_[id];
  left_[id] = static_cast<std::int32_t>(placed_.size());
  if (at.below != nullptr) {
    placed_.push_back({at.node, at.below + at.below->left});
    placed_.push_back({at.node, at.below + at.below->left + 1});
  } else {
    placed_.push_back(place(at.node->left));
    placed_.push_back(place(at.node->right));
  }
  left_.resize(placed_.size(), 0);
}

void TreeShape::order(const TreePolicy& policy, std::span<const SubtreeNodes* const> subtrees) {
  subtrees_ = subtrees;
  placed_.clear();
  left_.clear();
  if (subtrees.empty()) {  // as they were committed
    for (const GrowNode* node : policy.tree()) {
      placed_.push_back({node, nullptr});
      left_.push_back(node->committed ? node->left->id : 0);
    }
    return;
  }
  placed_.push_back(place(policy.tree().front()));
  left_.push_back(0);
  const std::int64_t splits_left = policy.max_leaves() - 1;
  if (policy.params().best_first)
    order_by_gain(splits_left);
  else
    order_by_level(splits_left);
}

void TreeShape::order_by_level(std::int64_t splits_left) {
  for (std::size_t id = 0; id < placed_.size() && splits_left > 0; ++id) {
    if (id + ahead < placed_.size()) prefetch(placed_[id + ahead].below);
    if (placed_[id].gain() < 0) continue;
    place_children(id);
    --splits_left;
  }
}

void TreeShape::order_by_gain(std::int64_t splits_left) {
  ByGain waiting;
  const auto add = [&](std::size_t id) {
    if (placed_[id].gain() >= 0) waiting.add(placed_[id].gain(), id);
  };
  add(0);
  for (; splits_left > 0 && !waiting.empty(); --splits_left) {
    const std::size_t id = waiting.take();
    place_children(id);
    const auto left = static_cast<std::size_t>(left_[id]);
    add(left);
    add(left + 1);
  }
}

void TreeShape::append_splits(const TreePolicy& policy, BinOf stored_bin,
                              GrownTrees& forest) const {
  constexpr double largest = std::numeric_limits<double>::max();
  const std::size_t first = forest.feature.size(), size = first + left_.size();
  forest.make_room(left_.size());
  forest.resize(size);
  std::copy(left_.begin(), left_.end(), forest.left.begin() + static_cast<std::ptrdiff_t>(first));
  std::fill_n(forest.set.begin() + static_cast<std::ptrdiff_t>(first), left_.size(), -1);
  for (std::size_t id = 0; id < left_.size(); ++id) {
    if (id + ahead < placed_.size()) prefetch(placed_[id + ahead].below);
    if (left_[id] == 0) continue;
    const SplitOf split = split_of(placed_[id]);
    const std::size_t at = first + id;
    forest.feature[at] = split.feature;
    forest.bin[at] =
        static_cast<std::int32_t>(stored_bin(static_cast<std::size_t>(split.feature), split.bin));
    forest.default_left[at] = split.missing_left;
    forest.gain[at] = std::min(policy.real_gain(split.gain), largest);
    if (split.set == nullptr) continue;
    forest.set[at] = static_cast<std::int32_t>(forest.sets.size());
    forest.sets.push_back(*split.set);
  }
  forest.tree_start.push_back(static_cast<std::int64_t>(size));
}

// The step of a leaf is -S(G) / (H + lambda) within all limits (Chen and Guestrin 2016, equation 5,
// with S as in grow/search/gain.h).
void TreeShape::set_values(const TreePolicy& policy, const LeafSums& leaf_sums, double rate,
                           GrownTrees& forest) const {
  const TreeParams& params = policy.params();
  const double g_unit = std::ldexp(1.0, -leaf_sums.g_exponent);
  const double h_unit = std::ldexp(1.0, -leaf_sums.h_exponent);
  const double step_unit = policy.scale().g_unit / policy.scale().h_unit;
  GainParams p{.reg_lambda = params.reg_lambda,
               .reg_alpha = params.reg_alpha,
               .max_delta_step = params.max_delta_step,
               .lower = -std::numeric_limits<double>::max(),
               .upper = std::numeric_limits<double>::max()};
  const std::vector<std::int64_t>& sums = leaf_sums.sums;
  const std::size_t tree = forest.n_trees() - 1, width = policy.width();
  double* values = forest.values(tree);
  for (std::size_t id = 0; id < left_.size(); ++id) {
    if (policy.gain().bounded) {
      p.lower = policy.tree()[id]->lower * step_unit;
      p.upper = policy.tree()[id]->upper * step_unit;
    }
    double cover = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const double g = static_cast<double>(sums[(id * width + k) * 2]) * g_unit;
      const double h = static_cast<double>(sums[(id * width + k) * 2 + 1]) * h_unit;
      values[id * width + k] = rate * bounded_step(p, g, h);
      cover += h;
    }
    forest.cover[forest.first(tree) + id] = cover / static_cast<double>(width);
  }
}

}  // namespace arboost
