// What the grower is told, and what it gives.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "grow/kernels/grow_kernels.h"
#include "table/codes.h"

namespace arboost {

// Between which values splits are tried: those of neighbouring bins; or, on ranks (bin/rank.h), all
// values, or such as are about sketch_eps of the hessian apart: that of all rows, for the trees of
// a round, or that of the rows of the node.
enum class Candidates : std::uint8_t { bins, values, per_round, per_node };

struct TreeParams {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  std::int64_t max_depth = 6;
  std::int64_t max_leaves = unlimited;
  bool best_first = false;  // else level by level
  double min_child_weight = 1;
  std::int64_t min_samples_leaf = 1;
  std::int64_t min_samples_split = 2;  // rows of a node that is split
  double gamma = 0;
  // A gain must exceed gamma and min_gain_share of the tree's weight (the sum of its rows'
  // hessians, mean over the outputs). As CART has it: only reach them, even if they are 0, in nodes
  // whose rows do not all want the same value.
  double min_gain_share = 0;
  bool allow_zero_gain = false;
  Criterion criterion = Criterion::quadratic;  // others know no penalties and no constraints
  bool random_cuts = false;  // one random cut of each feature instead of its best one
  double reg_lambda = 1;
  double reg_alpha = 0;
  double max_delta_step = 0;
  double colsample_bytree = 1;        // share of the features that a tree ...
  double colsample_bylevel = 1;       // ... each of its levels ...
  double colsample_bynode = 1;        // ... and each of its nodes may use
  std::vector<std::int8_t> monotone;  // by feature: +1 rising, -1 falling, 0 free; or empty
  // Splits of categories (grow/search/category.h).
  std::int32_t max_cat_to_onehot = 4;  // up to so many levels in a node: each against all others
  std::int32_t max_cat_threshold = 64;
  double min_cat_weight = 10;
  double cat_smooth = 10;
  double cat_l2 = 10;
  // Groups of features, ascending, that may meet on a path from root to leaf; empty: all may.
  std::vector<std::vector<std::uint32_t>> interactions;
  // Nodes of at most so many rows grow their subtrees at once. The tree is the same for any number.
  static constexpr std::size_t automatic = std::numeric_limits<std::size_t>::max();
  std::size_t subtree_rows = automatic;
  Candidates candidates = Candidates::bins;
  double sketch_eps = 0.004;
  // Memory for the histograms of nodes that wait to be split. What does not fit is built again from
  // the rows: slower, but the same sums and so the same tree.
  std::size_t histogram_bytes = std::size_t{512} << 20;
};

// Scores of rows: those of one row lie together, `stride` from one row's to the next.
struct ScoreRows {
  double* scores;
  std::size_t stride;
};

// Trees in flat arrays, one after the other. Node 0 of a tree is its root; an inner node's children
// are left and left + 1, both after their parent; a leaf has left = 0.
struct GrownTrees {
  explicit GrownTrees(std::size_t width_) : width(width_), tree_start{0} {}

  std::size_t width;                     // numbers in a leaf
  std::vector<std::int64_t> tree_start;  // [n_trees + 1]
  std::vector<std::int32_t> feature;
  std::vector<std::int32_t> bin;  // left are codes <= bin
  std::vector<std::int32_t> left;
  std::vector<std::uint8_t> default_left;
  // By set of levels instead: the sets, in the order of their nodes, and which one a node has, or
  // -1. A set decides on all codes; those that are no level of the feature follow default_left.
  std::vector<std::int32_t> set;
  std::vector<CodeSet> sets;
  std::vector<double> value;  // [n_nodes][width], learning rate included
  std::vector<double> gain;
  std::vector<double> cover;  // sum of hessians, mean over the outputs

  std::size_t n_trees() const { return tree_start.size() - 1; }
  std::size_t first(std::size_t tree) const { return static_cast<std::size_t>(tree_start[tree]); }
  std::size_t n_nodes(std::size_t tree) const { return first(tree + 1) - first(tree); }
  const double* values(std::size_t tree) const { return value.data() + first(tree) * width; }
  double* values(std::size_t tree) { return value.data() + first(tree) * width; }

  // Finds the leaves of rows of codes that were made with the same edges, and calls
  // use(begin, end, leaves) for numbers [begin, end) of the rows, from several threads.
  using UseLeaves = FunctionRef<void(std::size_t, std::size_t, const std::uint32_t*)>;
  void walk(std::size_t tree, const Codes& codes, const TreeRows& rows, Team& team,
            UseLeaves use) const;

  // scores += factor * the tree's values, for such rows.
  void add(std::size_t tree, const Codes& codes, const TreeRows& rows, double factor,
           ScoreRows scores, Team& team) const;

  // Other values for a tree, [node][width]. Under monotone constraints they are moved so that the
  // tree keeps to them: at each split on a constrained feature, the leaves of both sides stay on
  // their side of the middle between those that come nearest to each other or pass.
  void set_values(std::size_t tree, std::span<const double> values,
                  std::span<const std::int8_t> monotone);

  // Makes room for one more tree of n nodes; once there are some, for all that are expected.
  void make_room(std::size_t n);
  std::size_t expected = 0;  // trees

  // Forgets the last of the trees.
  void drop_last();

  // Throws std::invalid_argument unless every walk over codes of this kind ends in a leaf.
  void validate(const Codes& codes) const;
};

}  // namespace arboost
