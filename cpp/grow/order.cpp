// Grown nodes -> their final order in the tree. Nodes of subtrees get the same order as if they had
// passed the queue. O(n log n) in nodes; single-threaded.
#include <algorithm>
#include <utility>  // pair

#include "grow/grower.h"

namespace arboost {
namespace {

constexpr std::size_t ahead = 16;  // places: nodes of subtrees lie in another order

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

Grower::Placed Grower::place(const GrowNode* node) const {
  if (node->subtree_of < 0) return {node, nullptr};
  const Scratch& member = *scratch_[static_cast<std::size_t>(node->subtree_of)];
  return {node, member.subtrees.nodes.data() + node->subtree};
}

Grower::SplitOf Grower::split_of(const Placed& placed) const {
  const auto [node, below] = placed;
  if (below == nullptr) {
    const FeatureSplit& split = node->split;
    return {node->feature, split.bin, split.missing_left, node->gain,
            split.by_set ? &split.left : nullptr};
  }
  const Subtrees& trees = scratch_[static_cast<std::size_t>(node->subtree_of)]->subtrees;
  return {below->feature, below->bin, below->missing_left, below->gain,
          below->set < 0 ? nullptr : &trees.sets[static_cast<std::size_t>(below->set)]};
}

// Appends the children of a node.
void Grower::place_children(std::size_t id) {
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

void Grower::order_nodes() {
  placed_.clear();
  left_.clear();
  if (subtree_rows_ == 0) {  // as they were committed
    for (const GrowNode* node : tree_) {
      placed_.push_back({node, nullptr});
      left_.push_back(node->committed ? node->left->id : 0);
    }
    return;
  }
  placed_.push_back(place(tree_.front()));
  left_.push_back(0);
  std::int64_t splits_left = params_.max_leaves - 1;
  if (!params_.best_first) {
    for (std::size_t id = 0; id < placed_.size() && splits_left > 0; ++id) {
      if (id + ahead < placed_.size()) prefetch(placed_[id + ahead].below);
      if (placed_[id].gain() < 0) continue;
      place_children(id);
      --splits_left;
    }
    return;
  }
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

}  // namespace arboost
