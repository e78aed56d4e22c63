// Randomness without state: every random choice is a pure function of seed, purpose, round and
// index, so no choice depends on threads, chunks, partitions or device, and nothing is to be
// restored when a fit resumes.
#pragma once

#include <cstdint>

namespace arboost {

// What a number is drawn for: two purposes never see the same numbers. Values are part of the
// saved behaviour of a seed: add new ones at the end.
enum class Purpose : std::uint64_t {
  quantile_rows = 1,      // rows that quantiles are taken from
  gradient_rounding = 2,  // which way a gradient is rounded (grow/kernels/quantise.h)
  row_sample = 3,         // rows of a tree
  tree_columns = 4,       // features of a tree ...
  level_columns = 5,      // ... of one of its levels ...
  node_columns = 6,       // ... and of one of its nodes
  dropout = 7,            // trees that a round leaves out
  validation = 8,         // rows that are kept for validation
  level_order = 9,        // the order in which rows of a level see each other's target
  bundle_rows = 10,       // rows that features are compared on before they share a column
  bootstrap = 11,         // rows of a tree, drawn with replacement
  random_cut = 12,        // where a node's rows are cut
  bag = 13,               // rows and features of a member of an ensemble
};

// A bijection of 64 bits in which every input bit changes about half of the output bits: two
// rounds of multiply and xor-shift (the finaliser family of MurmurHash3, constants of variant 13
// in Stafford's "Better bit mixing", 2011).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 64 random bits. Loops over `index` pay for two mixes: the rest does not depend on it.
constexpr std::uint64_t counter_hash(std::uint64_t seed, Purpose purpose, std::uint64_t round,
                                     std::uint64_t index) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio: spreads counters
  std::uint64_t state = mix_bits(seed + odd);
  state = mix_bits(state + odd * static_cast<std::uint64_t>(purpose));
  state = mix_bits(state + odd * (round + 1));
  return mix_bits(mix_bits(state + odd * (index + 1)));
}

// 32 well-mixed bits from an index and a seed, for loops over many rows: a third of the price.
// (Each file that includes it has a copy of its own, compiled for its instruction set.)
static inline std::uint32_t short_hash(std::uint32_t index, std::uint32_t seed) {
  std::uint32_t x = (index ^ seed) * 0x9e3779b1u + seed;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  return x ^ (x >> 15);
}

}  // namespace arboost
