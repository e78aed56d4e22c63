// Counter-based random bits: every random choice is a hash of seed, purpose, round and index. No
// choice depends on threads, chunks, partitions or device, and a resumed fit has no generator state
// to restore.
#pragma once

#include <cstdint>

namespace arboost {

// Purpose of a draw: different purposes get independent numbers. The values are part of the
// reproducible behaviour of a seed: add new ones at the end.
enum class Purpose : std::uint64_t {
  quantile_rows = 1,      // rows sampled for quantiles of the features
  gradient_rounding = 2,  // stochastic rounding of gradients (grow/kernels/quantise.h)
  row_sample = 3,         // rows of a tree
  tree_columns = 4,       // features of a tree ...
  level_columns = 5,      // ... of one of its levels ...
  node_columns = 6,       // ... and of one of its nodes
  dropout = 7,            // trees that DART drops in a round
  validation = 8,         // rows of the validation set
  level_order = 9,        // row order of ordered target statistics
  bundle_rows = 10,       // rows sampled for exclusive feature bundling
  bootstrap = 11,         // rows of a tree, drawn with replacement
  random_cut = 12,        // random thresholds of a node (extra trees)
  bag = 13,               // rows and features of a member of an ensemble
  tied_rows = 14,         // order of documents of equal scores in a ranking
  relevance_noise = 15,   // noise of the relevances of listwise ranking
};

// A bijection of 64 bits in which every input bit changes about half of the output bits: two
// rounds of multiply and xor-shift (the finaliser family of MurmurHash3, constants of variant 13
// in Stafford's "Better bit mixing", 2011).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 64 random bits. A loop over `index` costs two mixes a step: the rest is loop-invariant.
constexpr std::uint64_t counter_hash(std::uint64_t seed, Purpose purpose, std::uint64_t round,
                                     std::uint64_t index) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: spreads counters
  std::uint64_t state = mix_bits(seed + odd);
  state = mix_bits(state + odd * static_cast<std::uint64_t>(purpose));
  state = mix_bits(state + odd * (round + 1));
  return mix_bits(mix_bits(state + odd * (index + 1)));
}

// 32 random bits from an index and a seed, for loops over many rows: a third of the cost. (Each
// file that includes it has a copy of its own, compiled for its instruction set.)
static inline std::uint32_t short_hash(std::uint32_t index, std::uint32_t seed) {
  std::uint32_t x = (index ^ seed) * 0x9e3779b1u + seed;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  return x ^ (x >> 15);
}

}  // namespace arboost
