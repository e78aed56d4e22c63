// Absolute errors around weighted medians, of a node and of both sides of its splits.
//
// A side's impurity is the sum of w |y - m| over its rows, where m is their weighted median. Rows
// are added to the left side in the order of a feature's values, and a Fenwick tree over the order
// of y (Fenwick 1994) finds the medians of both sides; sums of the right side are those of the node
// minus the left. Sums are integers, so their order does not matter.
//
//   order of y      a b c d e f        sums over a | a b | c | a b c d | e | e f ...
//   on the left     a     d            a row is added to log n of them; a median is found in log n
#pragma once

#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "base/types.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/rows/row_partition.h"

namespace arboost {

// Partial sums of weights, and of weights times y.
struct WeightSums {
  std::int64_t w = 0, wy = 0;
};

// The rows of one tree: target y = -g / h, weight, and rank of y within the open node.
class AbsoluteRows {
 public:
  AbsoluteRows(std::size_t n_table_rows, std::size_t width);

  // Takes the tree's rows. The pairs must stay while it grows.
  void start_tree(const TreeRows& rows, const TreePairs& pairs, Team& team);

  std::size_t width() const { return width_; }
  double g_unit() const { return g_unit_; }
  double h_unit() const { return h_unit_; }
  WeightSums sums(RowId row, std::size_t output) const {
    const FixedPair& pair = pairs_->at(number_[row], output);
    return {pair.h, -std::int64_t{pair.g}};
  }
  double y(RowId row, std::size_t output) const {
    const WeightSums s = sums(row, output);
    return s.w == 0 ? 0.0
                    : static_cast<double>(s.wy) * g_unit_ / (static_cast<double>(s.w) * h_unit_);
  }
  // Rank among the rows of the smallest open node that holds the row. Nodes have disjoint rows, so
  // threads may rank theirs concurrently.
  std::uint32_t& rank(RowId row, std::size_t output) { return ranks_[row * width_ + output]; }
  std::uint32_t rank(RowId row, std::size_t output) const { return ranks_[row * width_ + output]; }

 private:
  std::size_t width_;
  const TreePairs* pairs_ = nullptr;
  double g_unit_ = 1, h_unit_ = 1;
  std::vector<std::uint32_t> number_;  // among the tree's rows, by table row
  std::vector<std::uint32_t> ranks_;   // [table row][output]
};

// One node, opened for the search of its split.
class AbsoluteNode {
 public:
  // Numbers the node's rows in the order of y. Returns the node's error.
  double open(const Element* elements, std::size_t n, AbsoluteRows& rows);

  std::size_t size() const { return n_; }
  const WeightSums* total(std::size_t output) const { return total_.data() + output * (n_ + 1); }
  const double* y(std::size_t output) const { return y_.data() + output * n_; }
  WeightSums all(std::size_t output) const { return all_[output]; }

 private:
  std::size_t n_ = 0;
  std::vector<std::uint64_t> keys_;
  std::vector<double> y_;          // [output][n], ascending
  std::vector<WeightSums> total_;  // [output][n + 1]: partial sums of all rows
  std::vector<WeightSums> all_;    // [output]
};

// The left side of a split that grows row by row.
class AbsoluteSide {
 public:
  void clear(const AbsoluteNode& node, const AbsoluteRows& rows);
  void add(RowId row);

  std::size_t size() const { return n_rows_; }
  // Sums of weights, in integers, over all outputs.
  std::int64_t weight() const;
  std::int64_t other_weight() const;
  // The errors of both sides.
  double both_errors() const;

 private:
  const AbsoluteNode* node_ = nullptr;
  const AbsoluteRows* rows_ = nullptr;
  std::size_t n_rows_ = 0;
  std::vector<WeightSums> left_;  // [output][n + 1]: partial sums
  std::vector<WeightSums> all_;   // [output]
};

}  // namespace arboost
