// Where a feature is cut at random.
#pragma once

#include <cstdint>

#include "random.h"

namespace arboost {

// What one node's cuts are drawn from.
struct CutDraws {
  std::uint64_t key;            // of the node
  const double* const* values;  // by feature: what each of its bins stands for, ascending
};

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

inline std::uint64_t cut_key(const CutDraws& draws, std::uint32_t feature) {
  return mix_bits(draws.key + feature);
}

// The last bin on the left of a cut between the values of bins low and high, uniform in value.
inline std::uint32_t draw_cut(const CutDraws& draws, std::uint32_t feature, std::uint32_t low,
                              std::uint32_t high) {
  if (high - low == 1) return low;
  const double* values = draws.values[feature];
  const std::uint64_t bits = mix_bits(cut_key(draws, feature));
  const double share = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  const double at = (1 - share) * values[low] + share * values[high];
  // Halving without a branch: the last of [low, high) that is not above the cut.
  std::uint32_t bin = low;
  for (std::uint32_t length = high - low; length > 1;) {
    const std::uint32_t half = length / 2;
    bin += values[bin + half] <= at ? half : 0;
    length -= half;
  }
  return bin;
}

}  // namespace
}  // namespace arboost
