// Cost: n log n for n nodes, and the depth of each node that becomes a leaf.
//
// Pruning the weakest part of a branch raises the mean decrease of its remaining splits: alphas
// only grow. So the priority queue holds each node once, with an alpha that may be outdated; a
// popped node with a larger current alpha is pushed again.
#include "grow/trees/prune.h"

#include <cstddef>
#include <functional>  // greater
#include <queue>
#include <stdexcept>  // invalid_argument

namespace arboost {
namespace {

constexpr std::int32_t nobody = -1;

struct Branch {
  std::int32_t parent = nobody;
  std::int32_t preorder = 0;  // when left branches are read before right ones
  std::int32_t n_splits = 0;  // from here on down
  double decrease = 0;        // of all of them
  bool gone = false;
};

struct Link {
  double alpha;
  std::int32_t preorder, node;
  bool operator>(const Link& other) const {
    return alpha != other.alpha ? alpha > other.alpha : preorder > other.preorder;
  }
};

class Pruning {
 public:
  Pruning(std::span<const std::int32_t> left, std::span<const double> decrease)
      : left_(left.begin(), left.end()), decrease_(decrease), branches_(left.size()) {
    find_parents();
    for (std::size_t i = left_.size(); i-- > 0;)
      if (left_[i] != 0) add_up(i);
    find_places();
  }

  PruneOrder run() {
    PruneOrder order;
    order.kept.push_back(branches_[0].decrease);
    for (std::size_t i = 0; i < left_.size(); ++i)
      if (left_[i] != 0) push(static_cast<std::int32_t>(i));
    while (!links_.empty()) {
      const Link link = links_.top();
      links_.pop();
      const Branch& branch = branches_[static_cast<std::size_t>(link.node)];
      if (branch.gone) continue;
      if (alpha_of(branch) > link.alpha) {
        push(link.node);
        continue;
      }
      order.node.push_back(link.node);
      order.alpha.push_back(alpha_of(branch));
      make_leaf(link.node);
      order.kept.push_back(branches_[0].decrease);
    }
    return order;
  }

 private:
  static double alpha_of(const Branch& branch) { return branch.decrease / branch.n_splits; }

  void push(std::int32_t node) {
    const Branch& branch = branches_[static_cast<std::size_t>(node)];
    links_.push({alpha_of(branch), branch.preorder, node});
  }

  void find_parents() {
    const auto size = static_cast<std::int64_t>(left_.size());
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t child = left_[static_cast<std::size_t>(i)];
      if (child == 0) continue;
      if (child <= i || child + 1 >= size) throw std::invalid_argument("a child outside its tree");
      for (const std::int64_t c : {child, child + 1}) {
        std::int32_t& parent = branches_[static_cast<std::size_t>(c)].parent;
        if (parent != nobody) throw std::invalid_argument("a node has two parents");
        parent = static_cast<std::int32_t>(i);
      }
    }
    for (std::size_t i = 1; i < left_.size(); ++i)
      if (branches_[i].parent == nobody) throw std::invalid_argument("a lost node");
  }

  void add_up(std::size_t i) {
    const auto child = static_cast<std::size_t>(left_[i]);
    const Branch &a = branches_[child], &b = branches_[child + 1];
    branches_[i].n_splits = 1 + a.n_splits + b.n_splits;
    branches_[i].decrease = decrease_[i] + (a.decrease + b.decrease);
  }

  void find_places() {
    for (std::size_t i = 0; i < left_.size(); ++i) {  // parents come before their children
      if (left_[i] == 0) continue;
      const auto child = static_cast<std::size_t>(left_[i]);
      branches_[child].preorder = branches_[i].preorder + 1;
      branches_[child + 1].preorder = branches_[i].preorder + 2 + 2 * branches_[child].n_splits;
    }
  }

  void make_leaf(std::int32_t node) {
    waiting_.assign(1, node);
    while (!waiting_.empty()) {
      const auto i = static_cast<std::size_t>(waiting_.back());
      waiting_.pop_back();
      branches_[i].gone = true;
      if (left_[i] == 0) continue;
      waiting_.push_back(left_[i]);
      waiting_.push_back(left_[i] + 1);
      left_[i] = 0;
    }
    Branch& leaf = branches_[static_cast<std::size_t>(node)];
    leaf.n_splits = 0;
    leaf.decrease = 0;
    // Sums are recomputed instead of reduced, so that rounding errors do not accumulate.
    for (std::int32_t up = leaf.parent; up != nobody;
         up = branches_[static_cast<std::size_t>(up)].parent)
      add_up(static_cast<std::size_t>(up));
  }

  std::vector<std::int32_t> left_;
  std::span<const double> decrease_;
  std::vector<Branch> branches_;
  std::priority_queue<Link, std::vector<Link>, std::greater<>> links_;
  std::vector<std::int32_t> waiting_;
};

}  // namespace

PruneOrder prune_order(std::span<const std::int32_t> left, std::span<const double> decrease) {
  if (left.empty()) throw std::invalid_argument("a tree without nodes");
  if (left.size() != decrease.size())
    throw std::invalid_argument("decreases for another number of nodes");
  return Pruning(left, decrease).run();
}

}  // namespace arboost
