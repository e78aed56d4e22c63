// Cover, values and gains of splits, derived from those of the leaves: a model file stores only the
// differences.
#pragma once

#include <bit>  // bit_cast
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// Shrinkage of the leaves, and factor of the gains: boosters take steps of rate * -G / (H +
// reg_lambda) and gains of G, so 1 / rate^2 converts gains of steps to theirs. Sums of means are
// often integers, and are rounded to them; sums of steps are not.
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

// Writes cover, values and gain of the splits from cover and values of the leaves: sums, means and
// the gain of the mean squared error, or of shrunk steps. A model file stores only the differences
// from these numbers, so this function must never change: old files would be read wrongly.
//
// Trees are as in tree/forest.h. Throws std::invalid_argument if a child is outside its tree.
void derive_splits(std::span<const std::int64_t> tree_start, std::span<const std::int32_t> left,
                   const NodeNumbers& numbers, const Shrinkage& shrinkage);

// The same for one tree, whose numbers start at its root; `sums` is scratch memory.
void derive_tree(std::span<const std::int32_t> left, const NodeNumbers& numbers,
                 const Shrinkage& shrinkage, std::vector<double>& sums);

// The double `places` (zigzag-coded: 0, 1, 2, 3, ... are 0, -1, 1, -2, ...) away in the order of
// all doubles. The result may be any double.
inline double moved(double x, std::uint64_t places) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t position =
      (bits & sign ? ~bits : bits | sign) +  // in their order, as integers
      ((places >> 1) ^ (0 - (places & 1)));
  return std::bit_cast<double>(position & sign ? position ^ sign : ~position);
}

}  // namespace arboost
