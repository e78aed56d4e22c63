// The last tree of a forest on the device: the leaves of the rows, and sums over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device.h"
#include "cuda/totals.h"
#include "grow/device/records/device_records.h"
#include "grow/trees/grown_trees.h"
#include "table/codes.h"

namespace arboost::cuda {

struct DeviceState;

class DeviceLeaves {
 public:
  // Splits of the trees refer to `table`.
  DeviceLeaves(DeviceState& state, const Codes& table, std::size_t n_training);

  // The forest has a new last tree.
  void start(const GrownTrees& forest);
  // Notes the leaves of all training rows.
  void walk();
  // Sums [node][output][g, h] of pairs in the leaves of their rows; 0 in inner nodes. The first
  // notes these leaves on the way.
  std::vector<std::int64_t> walk_sums(const PairRows& pairs);
  std::vector<std::int64_t> sums(const PairRows& pairs);
  // Adds the tree's values to scores [position][outputs] of all training rows.
  void add_values(const GrownTrees& forest, std::size_t outputs, double* scores);

  // By row of the table: the leaves of the tree's rows after sums over them.
  const std::uint32_t* by_row() const { return leaf_of_row_.data(); }
  // The same memory for other numbers of the leaves.
  std::uint32_t* replaced_by_row() {
    has_walked_ = false;
    return leaf_of_row_.data();
  }
  void fetch(std::uint32_t* leaf_of_row);

 private:
  void send_tree();
  std::size_t n_sums(const PairRows& pairs) const;
  std::size_t shared_bytes(const PairRows& pairs) const;
  std::vector<std::int64_t> take_sums();

  DeviceState& state_;
  const Codes& table_;
  std::size_t n_training_;
  const GrownTrees* forest_ = nullptr;
  bool has_sent_ = false, has_walked_ = false, has_fetched_ = false;
  DeviceArray<std::uint32_t> leaf_of_row_;
  DeviceArray<NodeTest> tests_;
  DeviceArray<WalkNode> nodes_;
  DeviceArray<double> values_;
  Totals sums_;
};

}  // namespace arboost::cuda
