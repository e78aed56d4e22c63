// The parameters of tree growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "grow/search/gain.h"  // Criterion
#include "tree/level_groups.h"

namespace arboost {

// Split candidates: between neighbouring bins; on ranks (bin/rank.h), between all values; or those
// of many bins that are about sketch_eps of the hessian apart: of the hessian of all rows, for the
// trees of a round (bin/propose.h), or of the rows of the node.
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
  // hessians, mean over the outputs). With allow_zero_gain, as in CART, it need only reach them,
  // even if they are 0, in impure nodes.
  double min_gain_share = 0;
  bool allow_zero_gain = false;
  Criterion criterion = Criterion::quadratic;  // others allow no penalties and no constraints
  // Error of several targets: the end of the outputs of each; empty: all are of one target.
  std::vector<std::uint32_t> target_ends;
  bool random_cuts = false;  // one random threshold a feature instead of its best one
  double reg_lambda = 1;
  double reg_alpha = 0;
  double max_delta_step = 0;
  double colsample_bytree = 1;        // share of the features that a tree ...
  double colsample_bylevel = 1;       // ... each of its levels ...
  double colsample_bynode = 1;        // ... and each of its nodes may use
  std::vector<std::int8_t> monotone;  // by feature: +1 rising, -1 falling, 0 free; or empty
  // Splits of categories (grow/search/category.h).
  std::int32_t max_cat_to_onehot = 4;  // most levels in a node for one-vs-rest splits
  std::int32_t max_cat_threshold = 64;
  double min_cat_weight = 10;
  double cat_smooth = 10;
  double cat_l2 = 10;
  GroupedFeatures grouped;
  // Interaction constraints: groups of features, ascending, allowed together on a path from root to
  // leaf; empty: no constraint.
  std::vector<std::vector<std::uint32_t>> interactions;
  // Largest node whose subtree is grown at once by one thread, in rows. The tree is the
  // same for any number.
  static constexpr std::size_t automatic = std::numeric_limits<std::size_t>::max();
  std::size_t subtree_rows = automatic;
  int device = -1;  // CUDA device that holds the rows; -1: none. The tree is the same.
  Candidates candidates = Candidates::bins;
  double sketch_eps = 0.004;
  // Counts rows in every histogram, even if hessians tell leaf sizes (grow/rows/leaf_sizes.h):
  // slower, but the same tree.
  bool count_rows = false;
  bool may_count() const { return count_rows || min_samples_leaf > 1; }
  // Sums of a node's candidates are never rounded coarsely, so that rows sorted by value, which
  // have no histograms, give the same tree.
  bool sums_are_wide() const { return candidates == Candidates::per_node; }
  // Memory for the histograms of open nodes. Histograms that do not fit are rebuilt from the rows:
  // slower, but the same sums and so the same tree.
  std::size_t histogram_bytes = std::size_t{512} << 20;
  // Memory for the codes of a sample of a table in a file (grow/stored); larger ones are streamed.
  std::size_t sample_bytes = std::size_t{512} << 20;
  // Sums of a tree's integer gradients are below 2^sum_bits, at most 31. Fewer bits round as
  // coarsely as more rows do, for tests.
  int sum_bits = 31;
};

}  // namespace arboost
