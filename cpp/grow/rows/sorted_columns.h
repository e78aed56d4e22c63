// The rows of a tree, sorted by each feature, partitioned among its nodes.
//
// A node owns the same range in every feature's array as it does among the rows
// (grow/rows/row_partition.h):
//
//   rows        [ a b c d e f ]      node                 [ a c d | f e b ]    its children
//   feature 0   [ d a f b c e ]      d < a < f < ...      [ d a c | f b e ]
//   feature 1   [ c b e d f a ]      c < b < e < ...      [ c d a | b e f ]
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/rank.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/rows/row_partition.h"

namespace arboost {

class SortedColumns {
 public:
  // `ranks`: the codes themselves, where they are ranks; null: rows are sorted by the codes when
  // the first tree starts.
  SortedColumns(const Codes& codes, const Ranks* ranks, std::size_t n_training);

  // Takes the rows of a tree that uses the given features.
  void start_tree(const TreeRows& rows, std::span<const std::uint32_t> features, Team& team);

  // Partitions the rows of a node in every feature, as RowPartition::split has partitioned `rows`.
  void split(const GrowNode& node, const RowPartition& rows, int member, Team& team);

  // [n_rows of the node]: row id below, rank of its value in the high 32 bits.
  const Element* elements(std::size_t feature, const GrowNode& node) const {
    return elements_.data() + feature * stride_ + node.begin;
  }

 private:
  const std::uint32_t* order(std::size_t feature) const {
    return ranks_ != nullptr ? ranks_->order(feature) : order_.data() + feature * codes_.n_rows;
  }
  template <class Code>
  void sort(std::size_t feature);
  template <class Code>
  void fill(const TreeRows& rows, std::size_t feature);

  const Codes& codes_;
  const Ranks* ranks_;
  Buffer<std::uint32_t> order_;  // rows by code, as Ranks::places; empty: those of the ranks
  std::size_t stride_;           // from one feature's elements to the next's; one is never read
  Buffer<Element> elements_;
  Buffer<std::uint8_t> in_tree_;  // by table row
  // By member: buffer for the right side of a node, and one bit for each row of the table that goes
  // left.
  std::vector<std::unique_ptr<Buffer<Element>>> spare_;
  std::vector<std::unique_ptr<Buffer<std::uint64_t>>> goes_left_;
  std::vector<std::uint32_t> features_;  // of the tree
};

}  // namespace arboost
