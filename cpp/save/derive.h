// Numbers of leaves and splits <-> numbers of nodes; leaves -> what their splits probably are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace arboost {

// What leaves are shrunk by, and what gains are multiplied with: boosters take steps of
// rate * -G / (H + reg_lambda) and gains of G, so that 1 / rate^2 makes those of the steps theirs.
struct Shrinkage {
  double reg_lambda = 0, gain_factor = 1;
};

struct NodeNumbers {
  std::size_t width;
  double* cover;  // [n_nodes]
  double* value;  // [n_nodes][width]
  double* gain;   // [n_nodes]
};

// Takes cover and values of the leaves and writes cover, values and gain of the splits: sums, means
// and the gain of the mean squared error, or of shrunk steps. A file of trees holds only how far
// they are from it. So what this writes can never change: files would be read wrongly.
//
// Trees are as in predict/traverse.h. Throws std::invalid_argument where they lead out of the
// nodes.
void derive_splits(std::span<const std::int64_t> tree_start, std::span<const std::int32_t> left,
                   const NodeNumbers& numbers, const Shrinkage& shrinkage);

// Numbers of splits and of leaves, packed by save/bits.h, -> those of all nodes.
// Throws std::invalid_argument unless there is exactly one for each node, and none above `largest`.
void unpack_nodes(std::span<const std::uint8_t> is_split, std::span<const std::uint8_t> of_splits,
                  std::span<const std::uint8_t> of_leaves, std::uint64_t largest,
                  std::uint32_t* out);

// out[leaf] = the next row of `width` numbers; rows of splits are left alone.
// Throws std::invalid_argument unless there is exactly one for each leaf.
void spread_leaves(std::span<const std::uint8_t> is_split, std::span<const double> of_leaves,
                   std::size_t width, double* out);

// Moves the numbers of splits to others in the order of all doubles, 0, -1, 1, -2, ... places as
// 0, 1, 2, 3, ...; what comes out may be anything.
void move_splits(std::span<const std::uint8_t> is_split, std::span<const std::uint64_t> places,
                 std::size_t width, double* out);

}  // namespace arboost
