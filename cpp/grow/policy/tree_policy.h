// The policy of growing one tree: which nodes are split, in which order, on which features, under
// which limits. It uses sums and counts of nodes, and does not access rows.
//
// Rows (grow/policy/node_rows.h) take nodes from the policy, divide their rows, find the best
// splits of the children, and report back. Nodes are committed to the tree in one order, so the
// tree does not depend on the order of the expansions. Methods that threads call while the tree
// grows lock.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "base/parallel.h"  // FunctionRef
#include "grow/policy/queue.h"
#include "grow/sample/column_sampler.h"
#include "grow/sample/sample.h"
#include "grow/search/gain.h"
#include "grow/search/node_score.h"
#include "grow/trees/grow_node.h"
#include "grow/trees/tree_params.h"
#include "table/codes.h"

namespace arboost {

// Part of a tree that is grown by itself (grow/tree_parts.h): where its root stands in the tree.
struct TreePart {
  bool is_whole = true;        // the tree itself
  std::int64_t depth = 0;      // of the root
  std::uint64_t path = 1;      // hash of the path to it
  double tree_weight = 0;      // sum of the hessians of the whole tree, mean over the outputs
  std::int32_t tolerance = 1;  // twice the units by which |g| of equal values may differ from h y
};

// Request for one tree.
struct TreeRequest {
  std::uint64_t seed, number;  // random choices are hashes of the fit's seed and the tree's number
  std::uint64_t turn;          // among equal splits, features from this one on come first
  double rate;                 // values are multiplied by it
  const Sample* sample;        // rows it is grown on; null: all training rows
  bool leaves_from_all_rows;   // leaf values come from all training rows
  TreePart part{};
};

// Units of a tree's integer sums, and its size.
struct TreeScale {
  double g_unit, h_unit;  // real value of one integer unit
  double weight;          // sum of the hessians, mean over the outputs
  std::size_t n_rows;     // in all processes
  bool counted;           // sums have the number of rows as their last channel
  std::int32_t least_h;   // least hessian of a side that may have enough rows, in units
};

class TreePolicy {
 public:
  // Of the codes, only edges, bins and levels are used. `width` outputs share each tree.
  TreePolicy(const Codes& codes, const TreeParams& params, std::size_t width);

  const TreeParams& params() const { return params_; }
  std::size_t width() const { return width_; }
  std::size_t channels() const { return channels_; }  // numbers in a sum, with any count of rows

  void start_tree(const TreeRequest& request, std::size_t output, const TreeScale& scale);
  // The root, for `n_rows` rows in this process; the caller sets its sums. With subtrees, which
  // pass the queue as one node, the shape of the tree applies the limit of leaves later.
  GrowNode& open_root(std::size_t n_rows, bool has_subtrees);
  void add_root();  // once its best split is known

  // The next node to expand; null if none is ready, or the tree is finished.
  struct Next {
    GrowNode* node;
    bool is_finished;
  };
  Next take();
  // The nodes to expand at once, `most` at most; none if the tree is finished.
  void take_batch(std::size_t most, std::vector<GrowNode*>& batch);
  bool is_finished();
  // Makes the children of a node whose split sent n_left of its rows in this process, and all_left
  // of all its rows, to the left. Or in two steps: all that follows from the sums of the split,
  // then their rows.
  void make_children(GrowNode& node, std::size_t n_left, std::size_t all_left) {
    open_children(node);
    place_children(node, n_left, all_left);
  }
  void open_children(GrowNode& node);
  void place_children(GrowNode& node, std::size_t n_left, std::size_t all_left) const;
  // Takes back a node whose children's best splits are known. Calls forget(node) for nodes that
  // will not be split any more.
  void report(GrowNode& node, FunctionRef<void(GrowNode&)> forget);

  // Search of a node's split: units, features, lower bound of the score.
  const GainParams& gain() const { return gain_; }
  GainParams gain_of(const GrowNode& node) const;
  ColumnSampler& columns() { return columns_; }
  std::uint64_t cut_key() const { return cut_key_; }
  double node_score(const GrowNode& node) const;
  double node_score(const std::int64_t* sums) const;  // without bounds
  double floor_of(const std::int64_t* sums, double score) const;
  double min_gain() const { return min_gain_; }
  bool may_split(std::int64_t depth, std::size_t n_rows, const std::int64_t* sums) const;
  bool may_split(const GrowNode& node) const {
    return may_split(node.depth, node.all_rows, node.sums.data());
  }

  // Completes a split that a search has found: `next` is the lowest code above its bin among the
  // node's rows, or the missing code.
  void settle(std::int32_t feature, FeatureSplit& split, std::uint32_t next,
              const std::int64_t* left_sums, const std::int64_t* sums) const;
  // Without missing values in the node, missing values go to the child of larger hessian.
  bool is_heavier(const std::int64_t* left_sums, const std::int64_t* sums) const {
    return 2 * sum_of_h(left_sums, width_) >= sum_of_h(sums, width_);
  }

  // Of the tree that has grown: its nodes by id, and the real value of a split's gain.
  const std::vector<GrowNode*>& tree() const { return tree_; }
  double real_gain(double gain) const;
  const TreeScale& scale() const { return scale_; }
  std::int64_t max_leaves() const {
    return part_.is_whole ? params_.max_leaves : TreeParams::unlimited;
  }

 private:
  void start_gain();
  GrowNode& new_node(std::size_t begin, std::size_t end, int buffer, std::int64_t depth);
  void bound_children(GrowNode& node) const;
  void commit(GrowNode& node);

  const Codes& codes_;
  TreeParams params_;
  std::size_t width_, channels_;
  ColumnSampler columns_;
  TreeScale scale_{};
  TreePart part_{};
  GainParams gain_{};
  double score_unit_ = 1;
  double min_gain_ = 0;        // lower bound of a split's gain, in units
  std::uint64_t cut_key_ = 0;  // of random thresholds

  std::mutex mutex_;  // guards what follows while threads work
  GrowQueue queue_;
  std::deque<GrowNode> nodes_;  // used again for the next tree
  std::size_t n_nodes_ = 0;
  std::vector<GrowNode*> tree_;  // by id
};

}  // namespace arboost
