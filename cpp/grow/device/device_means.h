// Sums of targets over the leaves of a tree, as the host adds them up: doubles, in the order of the
// rows. The rows are sorted by leaf, and then a warp adds up each leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device.h"
#include "grow/device/records/mean_records.h"
#include "grow/policy/leaf_target.h"

namespace arboost::cuda {

struct DeviceState;

class DeviceMeans {
 public:
  DeviceMeans(DeviceState& state, std::size_t n_training, std::size_t width)
      : state_(state), n_training_(n_training), width_(width) {}

  // Sums [leaf][weight, weighted target ...] over the rows of the tree, whose leaves are below
  // n_leaves; `counts` are those of its sample, or null. Elements of rows are overwritten.
  std::vector<double> sums(const std::uint32_t* leaf_of_row, std::size_t n_leaves,
                           const LeafTarget& target, const float* counts);

 private:
  const Element* sort(const std::uint32_t* leaf_of_row, std::size_t n_leaves);

  DeviceState& state_;
  std::size_t n_training_, width_;
  DeviceArray<double> y_, weight_, sums_;
  std::uint64_t version_ = 0;  // of y_ and weight_
  DeviceArray<std::uint32_t> counts_, totals_;
  DeviceArray<LeafRange> ranges_;
};

}  // namespace arboost::cuda
