// Order of growth. Threads expand nodes in any order, also speculatively; committing expansions in
// one order decides the tree, so it is the same for any number of threads. O(log n) a node; the
// caller holds a lock.
//
//   ready      evaluated, and not yet taken by a thread; its parent may still be ahead of the tree
//   frontier   in the tree, and worth splitting
//   commit     the best node of the frontier, once expanded: its children join the tree
//   drop       frontier nodes that as many better ones precede as there are splits left
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
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

// Among equals the older one first: the order that the tree is committed in.
struct TreeOrder {
  bool best_first;
  bool operator()(const GrowNode* a, const GrowNode* b) const {
    return splits_later(best_first, a, b, a->id > b->id);
  }
};

// The same for nodes that may not be in the tree yet and so have no id.
struct ReadyOrder {
  bool best_first;
  bool operator()(const GrowNode* a, const GrowNode* b) const {
    return splits_later(best_first, a, b, a->number > b->number);
  }
};

class GrowQueue {
 public:
  explicit GrowQueue(bool best_first) : best_first_(best_first) {}

  // Starts a tree of at most so many splits.
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
    return taken(first_untaken(), [this](const GrowNode&) { return ahead_ < splits_left_; });
  }

  // The same for a batch that is expanded at once, where one more costs little: any that may still
  // be split, of a gain of at least `least_gain()` at the beginning of the batch.
  GrowNode* take(double least_gain) {
    return taken(first_untaken(),
                 [least_gain](const GrowNode& node) { return node.gain >= least_gain; });
  }

  // The least gain of nodes that may still be split: as many better ones are in the frontier as
  // there are splits left. Linear in the frontier.
  double least_gain() {
    const auto n = static_cast<std::size_t>(splits_left_);
    if (!best_first_ || frontier_.size() <= n) return 0;
    gains_.clear();
    for (const GrowNode* node : frontier_) gains_.push_back(node->gain);
    const auto last = gains_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(gains_.begin(), last, gains_.end(), std::greater<>());
    return *last;
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

  GrowNode* first_untaken() const {
    return frontier_.empty() || frontier_.front()->taken ? nullptr : frontier_.front();
  }
  // Takes the node or, for null, the first that is ready and may be taken.
  template <class MayTake>
  GrowNode* taken(GrowNode* node, MayTake may_take) {
    while (node == nullptr && !ready_.empty() && may_take(*ready_.front())) {
      GrowNode* next = pop(ready_, ReadyOrder{best_first_});
      if (!next->taken) node = next;
    }
    if (node == nullptr) return nullptr;
    node->taken = true;
    ++ahead_;
    return node;
  }

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
  Heap ready_, frontier_;
  std::vector<double> gains_;
};

}  // namespace arboost
