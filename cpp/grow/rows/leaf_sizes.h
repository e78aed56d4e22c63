// Least number of rows in a leaf, from sums of hessians instead of counts.
//
// A channel that counts rows doubles the work of every histogram. If each row of the tree has a
// hessian in [low, high], in integer units and summed over the outputs, the hessian h of a side
// bounds the number of its rows:
//
//   h <  min_rows * low     fewer than min_rows
//   h >= min_rows * high    at least min_rows
//   between                 in doubt
//
// The search admits splits in doubt. Only the best split of a node must be certain: if it is in
// doubt, the rows of its feature are counted. Where it has too few rows, the features of the node
// are searched again, and those whose best split is in doubt by counts
// (grow/split/count_search.cpp). Equal hessians, as of squared error without weights, leave no
// doubt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/collective.h"
#include "base/parallel.h"
#include "grow/rows/row_partition.h"
#include "grow/search/search_data.h"
#include "grow/trees/tree_params.h"
#include "table/codes.h"

namespace arboost {

// Rows that are counted in the sums of a tree: none; those of small nodes, whose rows are read one
// by one anyway; or those of histograms, too.
enum class Counting : std::uint8_t { none, without_histograms, always };

class LeafSizes {
 public:
  // `count_doubts`: rows are counted wherever hessians leave doubts, because they cannot be counted
  // later; unless a leaf may have one row.
  LeafSizes(const Codes& codes, const TreeParams& params, std::size_t outputs, bool count_doubts);

  // One pass over the tree's rows, unless a leaf may have one row.
  void start_tree(const RowPartition& rows, Collective& workers, Team& team);
  // The same for n_rows rows elsewhere, whose hessians are in [low, high].
  void start_tree(std::int64_t low, std::int64_t high, std::size_t n_rows);
  // The same where rows are counted in any case; they need not be in this process.
  void start_tree() {
    counting_ = params_.may_count() ? Counting::always : Counting::none;
    low_ = high_ = least_h_ = 1;
  }

  Counting counting() const { return counting_; }
  bool in_doubt() const { return counting_ == Counting::without_histograms; }
  // Least hessian of a side that may have enough rows, mean over the outputs.
  std::int32_t least_h() const { return least_h_; }
  // Hessian of a side that has enough rows for certain, summed over the outputs.
  std::int64_t certain_h() const;
  // True if some row has a zero hessian: a code of zero sums may then occur in a node.
  bool any_empty() const { return low_ == 0; }

  // True if sums alone show that both sides of a split have enough rows.
  bool is_certain(std::size_t feature, const FeatureSplit& split, const std::int64_t* left_sums,
                  const std::int64_t* sums) const;

  // The number of rows of each code of a feature among n elements, in `buffer`.
  std::span<const std::int64_t> count(std::size_t feature, const Element* elements, std::size_t n,
                                      std::vector<std::int64_t>& buffer) const;
  // True if both sides have enough of the counted rows, and no missing value was overlooked.
  bool has_enough(std::size_t feature, const FeatureSplit& split,
                  std::span<const std::int64_t> counts) const;

 private:
  Counting choose() const;
  bool may_overlook_missing(std::size_t feature, const FeatureSplit& split) const;

  const Codes& codes_;
  const TreeParams& params_;
  std::int64_t outputs_;
  bool count_doubts_;
  Counting counting_ = Counting::none;
  std::int64_t low_ = 1, high_ = 1;  // hessians of the tree's rows
  std::int32_t least_h_ = 1;
};

}  // namespace arboost
