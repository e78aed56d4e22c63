// Numbers of leaves and splits <-> numbers of nodes; leaves -> what their splits probably are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace arboost {

struct NodeNumbers {
  std::size_t width;
  double* cover;  // [n_nodes]
  double* value;  // [n_nodes][width]
  double* gain;   // [n_nodes]
};

// Takes cover and values of the leaves and writes cover, values and gain of the splits: sums, means
// and the gain of the mean squared error. A file of trees holds only how far they are from it. So
// what this writes can never change: files would be read wrongly.
//
// Trees are as in predict/traverse.h. Throws std::invalid_argument where they lead out of the
// nodes.
void derive_splits(std::span<const std::int64_t> tree_start, std::span<const std::int32_t> left,
                   const NodeNumbers& numbers);

// out[node] = the next row of `width` words of those of the splits, or of the leaves.
// Throws std::invalid_argument unless there is exactly one for each node.
void merge_words(std::span<const std::uint8_t> is_split, std::span<const std::uint64_t> of_splits,
                 std::span<const std::uint64_t> of_leaves, std::size_t width, std::uint64_t* out);

}  // namespace arboost
