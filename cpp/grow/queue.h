// The order of growth. Nodes may be expanded in any order by any thread, and early; what becomes of
// the tree is decided by committing expansions in one order, so it is the same for any number of
// threads.
//
//   open      evaluated, in the tree, waiting to be expanded
//   pending   being expanded, or expanded and waiting for a better node to be committed first
//   commit    the best node of open and pending, once expanded: its children join the tree
//   drop      open, but with as many better open nodes as there are splits left: a leaf for good
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels.h"

namespace arboost {

// A node while the tree grows: which rows it holds, its sums, and its best split.
struct GrowNode {
  std::size_t begin = 0, end = 0;  // its elements
  int buffer = 0;                  // which of the two element arrays holds them
  std::int64_t depth = 0;
  std::int32_t id = -1;            // place in the finished tree, given when its parent is committed
  std::vector<std::int64_t> sums;  // [channels]
  std::vector<std::int64_t> left_sums;  // [channels], of the rows that its best split sends left
  std::int64_t* histogram = nullptr;    // kept while the node may still be expanded
  double gain = -1;                     // of its best split, in units; not above 0: it is a leaf
  std::int32_t feature = -1;
  FeatureSplit split;
  bool expanded = false;   // its children exist
  bool committed = false;  // ... and are part of the tree
  GrowNode* left = nullptr;
  GrowNode* right = nullptr;

  std::size_t n_rows() const { return end - begin; }
};

class GrowQueue {
 public:
  GrowQueue(bool best_first, std::int64_t max_splits)
      : best_first_(best_first), splits_left_(max_splits) {}

  // True when a is to be split before b: by gain, or level by level; then in order of creation.
  bool before(const GrowNode* a, const GrowNode* b) const {
    if (best_first_ && a->gain != b->gain) return a->gain > b->gain;
    if (!best_first_ && a->depth != b->depth) return a->depth < b->depth;
    return a->id < b->id;
  }

  // std::push_heap keeps the "largest" in front: here the one that comes before all others.
  auto heap_order() const {
    return [this](const GrowNode* a, const GrowNode* b) { return before(b, a); };
  }

  void add(GrowNode* node) {
    if (node->gain <= 0) return;
    open_.push_back(node);
    std::push_heap(open_.begin(), open_.end(), heap_order());
  }

  bool finished() const { return splits_left_ == 0 || (open_.empty() && pending_.empty()); }

  // The next node to expand, or null when there is none now. A node that comes before all pending
  // ones is sure to be split; others are taken on speculation, within the splits that are left.
  GrowNode* take() {
    if (open_.empty()) return nullptr;
    const bool sure = std::none_of(pending_.begin(), pending_.end(), [this](const GrowNode* node) {
      return before(node, open_.front());
    });
    if (!sure && static_cast<std::int64_t>(pending_.size()) >= splits_left_) return nullptr;
    std::pop_heap(open_.begin(), open_.end(), heap_order());
    GrowNode* node = open_.back();
    open_.pop_back();
    pending_.push_back(node);
    return node;
  }

  // Takes out nodes that can no longer be split, and hands them to on_drop(node). A few at a time,
  // so that the cost of finding them is shared.
  template <class OnDrop>
  void drop(OnDrop on_drop) {
    constexpr std::size_t batch = 16;
    if (open_.size() < batch || static_cast<std::int64_t>(open_.size() - batch) < splits_left_)
      return;
    const auto end = open_.begin() + splits_left_;
    std::nth_element(open_.begin(), end, open_.end(),
                     [this](const GrowNode* a, const GrowNode* b) { return before(a, b); });
    std::for_each(end, open_.end(), on_drop);
    open_.erase(end, open_.end());
    std::make_heap(open_.begin(), open_.end(), heap_order());
  }

  // Commits what can be: on_commit(node) gives ids to the children and adds them with add().
  template <class OnCommit>
  void commit(OnCommit on_commit) {
    while (splits_left_ > 0 && !pending_.empty()) {
      const auto best = std::min_element(pending_.begin(), pending_.end(),
                                         [this](auto* a, auto* b) { return before(a, b); });
      GrowNode* node = *best;
      if (!node->expanded || (!open_.empty() && before(open_.front(), node))) return;
      pending_.erase(best);
      --splits_left_;
      on_commit(node);
    }
  }

 private:
  bool best_first_;
  std::int64_t splits_left_;
  std::vector<GrowNode*> open_;
  std::vector<GrowNode*> pending_;
};

}  // namespace arboost
