// Order of growth. Threads expand nodes in any order, also speculatively; committing expansions in
// one order decides the tree, so it is the same for any number of threads. O(log n) a node; the
// caller holds a lock.
//
//   ready      evaluated, and not yet taken by a thread; its parent may still be ahead of the tree
//   frontier   in the tree, and worth splitting
//   commit     the best node of the frontier, once expanded: its children join the tree
//   drop       frontier nodes with at least as many better nodes as there are splits left
//
// Threads take one node at a time; rows that are served in batches take many at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "grow/trees/grow_node.h"

namespace arboost {

// True if a is split after b: by gain, or level by level. (The comparison of std heaps, whose front
// is the largest element.)
inline bool splits_later(bool best_first, const GrowNode* a, const GrowNode* b, bool if_equal) {
  if (best_first && a->gain != b->gain) return a->gain < b->gain;
  if (!best_first && a->depth != b->depth) return a->depth > b->depth;
  return if_equal;
}

// Among equals nodes of the tree first, and of these the older one: the order that the tree is
// committed in. Nodes that are not in the tree yet have no id.
struct TreeOrder {
  bool best_first;
  bool operator()(const GrowNode* a, const GrowNode* b) const {
    const bool a_is_in = a->id >= 0, b_is_in = b->id >= 0;
    const bool later = a_is_in != b_is_in ? b_is_in
                       : a_is_in          ? a->id > b->id
                                          : a->number > b->number;
    return splits_later(best_first, a, b, later);
  }
};

// The same by the order of creation.
struct ReadyOrder {
  bool best_first;
  bool operator()(const GrowNode* a, const GrowNode* b) const {
    return splits_later(best_first, a, b, a->number > b->number);
  }
};

class GrowQueue {
 public:
  explicit GrowQueue(bool best_first) : best_first_(best_first) {}

  // Starts a tree of at most max_splits splits.
  void reset(std::int64_t max_splits) {
    splits_left_ = max_splits;
    ahead_ = 0;
    ready_.clear();
    frontier_.clear();
  }

  void add_ready(GrowNode* node) {
    if (node->gain >= 0) push(ready_, node, ReadyOrder{best_first_});
  }
  void add_to_frontier(GrowNode* node) {
    if (node->gain >= 0) push(frontier_, node, TreeOrder{best_first_});
  }

  bool finished() const { return splits_left_ == 0 || frontier_.empty(); }

  // The next node to expand, or null. The first of the frontier is certain to be split; others are
  // expanded speculatively, at most as many as there are splits left.
  GrowNode* take() {
    GrowNode* node = frontier_.empty() || frontier_.front()->taken ? nullptr : frontier_.front();
    while (node == nullptr && !ready_.empty() && ahead_ < splits_left_) {
      GrowNode* next = pop(ready_, ReadyOrder{best_first_});
      if (!next->taken) node = next;
    }
    if (node == nullptr) return nullptr;
    node->taken = true;
    ++ahead_;
    return node;
  }

  // The nodes to expand at once, `most` at most: those that would be split if no node that is still
  // unknown were worth it. Unknown nodes come before some of these and after others, so no other
  // node can be part of the tree, and the tree needs as many batches as it is deep.
  void take_batch(std::size_t most, std::vector<GrowNode*>& batch) {
    batch.clear();
    const TreeOrder order{best_first_};
    coming_ = frontier_;
    for (std::int64_t n = 0; n < splits_left_ && !coming_.empty() && batch.size() < most; ++n) {
      GrowNode* node = pop(coming_, order);
      if (node->expanded) {
        for (GrowNode* child : {node->left, node->right})
          if (child->gain >= 0) push(coming_, child, order);
      } else {
        node->taken = true;
        batch.push_back(node);
      }
    }
    ahead_ += static_cast<std::int64_t>(batch.size());
  }

  // Commits all expanded nodes that are due: on_commit(node) assigns ids to the children and adds
  // them to the frontier.
  template <class OnCommit>
  void commit(OnCommit on_commit) {
    while (!finished() && frontier_.front()->expanded) {
      GrowNode* node = pop(frontier_, TreeOrder{best_first_});
      --splits_left_;
      --ahead_;
      on_commit(node);
    }
  }

  // Removes nodes that can no longer be split, and passes those that no thread has taken to
  // on_drop(node). In batches, to amortise the selection.
  template <class OnDrop>
  void drop(OnDrop on_drop) {
    constexpr std::size_t batch = 16;
    if (frontier_.size() < batch ||
        static_cast<std::int64_t>(frontier_.size() - batch) < splits_left_)
      return;
    const auto end = frontier_.begin() + splits_left_;
    const TreeOrder order{best_first_};
    std::nth_element(frontier_.begin(), end, frontier_.end(),
                     [order](const GrowNode* a, const GrowNode* b) { return order(b, a); });
    for (auto node = end; node != frontier_.end(); ++node) {
      if ((*node)->taken) continue;
      (*node)->taken = true;
      on_drop(*node);
    }
    frontier_.erase(end, frontier_.end());
    std::make_heap(frontier_.begin(), frontier_.end(), order);
  }

 private:
  using Heap = std::vector<GrowNode*>;

  template <class Order>
  static void push(Heap& heap, GrowNode* node, Order order) {
    heap.push_back(node);
    std::push_heap(heap.begin(), heap.end(), order);
  }
  template <class Order>
  static GrowNode* pop(Heap& heap, Order order) {
    std::pop_heap(heap.begin(), heap.end(), order);
    GrowNode* node = heap.back();
    heap.pop_back();
    return node;
  }

  bool best_first_;
  std::int64_t splits_left_ = 0;
  std::int64_t ahead_ = 0;  // nodes that are taken and not committed
  Heap ready_, frontier_, coming_;
};

}  // namespace arboost
