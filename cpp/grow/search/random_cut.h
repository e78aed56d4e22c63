// Random thresholds of extremely randomised trees: hash of node and feature -> threshold, uniform
// in value. O(log bins) a draw.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace arboost {

// Source of one node's random thresholds, for one-byte codes.
struct CutDraws {
  static constexpr std::uint32_t length = 256;

  std::uint64_t key;            // of the node
  const double* const* values;  // by feature: values of its bins, padded with infinity to [length]
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

// The last bin left of a random threshold between the values of bins low and high. values(bin)
// ascends, and is infinite after the last bin; `length` is a power of two, at least the number of
// bins.
template <class Values>
inline std::uint32_t draw_cut(std::uint64_t key, const Values& values, std::uint32_t length,
                              std::uint32_t low, std::uint32_t high) {
  const double at = draw_between(key, values(low), values(high));
  // The last bin not above the threshold. A fixed number of steps without branches, so that several
  // searches overlap.
  std::uint32_t bin = 0;
  for (std::uint32_t half = length / 2; half > 0; half /= 2)
    bin += values(bin + half) <= at ? half : 0;
  bin = bin < low ? low : bin;
  return bin < high ? bin : high - 1;
}

}  // namespace
}  // namespace arboost
