// Numbers of leaves and splits <-> numbers of nodes; leaves -> what their splits probably are.
#pragma once

#include <bit>  // bit_cast
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// What leaves are shrunk by, and what gains are multiplied with: boosters take steps of
// rate * -G / (H + reg_lambda) and gains of G, so that 1 / rate^2 makes those of the steps theirs.
// Sums of means are often whole, and are rounded to that then; sums of steps are not.
struct Shrinkage {
  double reg_lambda = 0, gain_factor = 1;
  bool whole_sums = true;
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

// The same for one tree, whose numbers start at its root; `sums` is scratch memory.
void derive_tree(std::span<const std::int32_t> left, const NodeNumbers& numbers,
                 const Shrinkage& shrinkage, std::vector<double>& sums);

// The double so many places away in the order of all doubles; 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
// What comes out may be anything.
inline double moved(double x, std::uint64_t places) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t place = (bits & sign ? ~bits : bits | sign) +  // in their order, as integers
                              ((places >> 1) ^ (0 - (places & 1)));
  return std::bit_cast<double>(place & sign ? place ^ sign : ~place);
}

}  // namespace arboost
