// Random splits of extremely randomised trees: hash of node and feature -> threshold, uniform in
// value, or set of levels. O(log bins) a threshold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "tree/split_rule.h"

namespace arboost {

// Source of one node's random thresholds, for one-byte codes.
struct CutDraws {
  // By feature: values of its bins, ascending, padded with infinity to [n_values]; then those of
  // every 16th bin from the 16th on, padded to [16].
  static constexpr std::uint32_t n_values = 257, length = n_values + 16;

  std::uint64_t key;  // of the node
  const double* const* values;
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

// A random proper, nonempty subset of the codes, with one random bit a code.
inline CodeSet draw_levels(const CodeSet& seen, std::uint64_t key) {
  for (std::uint64_t turn = 0;; ++turn) {
    CodeSet set;
    bool any = false, all = true;
    for (std::size_t w = 0; w < 4; ++w) {
      set.words[w] = seen.words[w] & mix_bits(mix_bits(key + 4 * turn + w));
      any |= set.words[w] != 0;
      all &= set.words[w] == seen.words[w];
    }
    if (any && !all) return set;
  }
}

// How many of 16 numbers are not above a limit.
inline std::uint32_t count_up_to(const double* numbers, double limit) {
  std::uint64_t counts[4] = {};
  for (std::size_t i = 0; i < 16; i += 4)
    for (std::size_t j = 0; j < 4; ++j) counts[j] += numbers[i + j] <= limit ? 1 : 0;
  return static_cast<std::uint32_t>(counts[0] + counts[1] + counts[2] + counts[3]);
}

// The same from the values of CutDraws, in two steps.
inline std::uint32_t draw_cut(std::uint64_t key, const double* values, std::uint32_t low,
                              std::uint32_t high) {
  const double at = draw_between(key, values[low], values[high]);
  std::uint32_t bin = 16 * count_up_to(values + CutDraws::n_values, at);
  bin += count_up_to(values + bin + 1, at);
  bin = bin < low ? low : bin;
  return bin < high ? bin : high - 1;
}

}  // namespace
}  // namespace arboost
