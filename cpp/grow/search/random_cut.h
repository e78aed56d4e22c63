// Where a feature is cut at random.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace arboost {

// What one node's cuts are drawn from, where codes take a byte.
struct CutDraws {
  static constexpr std::uint32_t length = 256;

  std::uint64_t key;  // of the node
  const double* const*
      values;  // by feature: what its bins stand for, and then infinities: [length]
};

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

// The key of one of a node's features.
inline std::uint64_t cut_key(std::uint64_t node, std::uint32_t feature) {
  return mix_bits(node + feature);
}

// A cut between two values, uniform.
inline double draw_between(std::uint64_t key, double low, double high) {
  const double share = (static_cast<double>(mix_bits(key) >> 11) + 0.5) * 0x1p-53;
  return (1 - share) * low + share * high;
}

// The last bin on the left of a cut between the values of bins low and high. values(bin) ascends,
// and is infinite behind the last bin; `length` is a power of two that is not below the number of
// bins.
template <class Values>
inline std::uint32_t draw_cut(std::uint64_t key, const Values& values, std::uint32_t length,
                              std::uint32_t low, std::uint32_t high) {
  const double at = draw_between(key, values(low), values(high));
  // The last one that is not above the cut. Always as many steps, and no branch: several searches
  // go on at once.
  std::uint32_t bin = 0;
  for (std::uint32_t half = length / 2; half > 0; half /= 2)
    bin += values(bin + half) <= at ? half : 0;
  bin = bin < low ? low : bin;
  return bin < high ? bin : high - 1;
}

}  // namespace
}  // namespace arboost
