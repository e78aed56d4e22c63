// Whether a row is drawn, and its weight: for kernels of the processor and of devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.h"     // short_hash
#include "tree/tree_rows.h"  // FixedPair

namespace arboost {

// Norms of rows: the root of the sum over the outputs of g^2 + h^2.
struct NormArgs {
  const FixedPair* pairs;
  std::size_t row_stride, output_stride, outputs;
  float g_unit, h_unit;  // real value of one integer unit
  bool squared;          // squared norms: the same order, and cheaper
};

struct DrawArgs {
  std::uint32_t seed;
  std::uint32_t limit;   // without norms: rows whose hash is at most this are kept
  NormArgs norms;        // no pairs: all rows are equal
  float mu;              // rows of at least this norm are kept
  float largest_weight;  // inverse of the smallest probability
};

// One-side sampling: all rows of large norm, and some of the others. Probabilities are in units of
// 2^-24.
struct TopArgs {
  std::uint32_t seed;
  NormArgs norms;           // squared norms
  float above;              // rows of this norm or a larger one are kept
  float at;                 // rows in [at, above) may count as large
  std::int32_t at_large;    // probability of these rows to count as large
  std::int32_t at_kept;     // ... and to be kept at all
  std::int32_t other_kept;  // probability of all other rows to be kept
  float weight;             // of rows kept at random
};

// Each file that includes them has a copy of its own, compiled for its instruction set.

// An output's share in a squared norm.
static inline float square_of(const NormArgs& args, const FixedPair& pair) {
  const float g = static_cast<float>(pair.g) * args.g_unit;
  const float h = static_cast<float>(pair.h) * args.h_unit;
  return g * g + h * h;
}

struct DrawnRow {
  std::uint32_t kept;  // 0 or 1
  float weight;
};

// The leading 24 bits of a row's hash; signed, because only that converts to float in vectors
// everywhere.
static inline std::int32_t row_bits(std::uint32_t row, std::uint32_t seed) {
  return static_cast<std::int32_t>(short_hash(row, seed) >> 8);
}

static inline DrawnRow draw_row(const DrawArgs& args, std::uint32_t row) {
  return {short_hash(row, args.seed) <= args.limit ? 1u : 0u, 1.0f};
}

// A row is drawn with probability min(1, norm / mu), and its weight is the inverse. Without
// branches: a norm of 0 counts as the smallest float, and so gets the largest weight.
static inline DrawnRow draw_row(const DrawArgs& args, std::uint32_t row, float norm) {
  const float some = norm > 0x1p-126f ? norm : 0x1p-126f;
  const float inverse = args.mu / some;
  const float limited = inverse < args.largest_weight ? inverse : args.largest_weight;
  const float weight = limited > 1.0f ? limited : 1.0f;
  // u < 1 / weight with u in (0, 1): always for a weight of 1.
  const float u = (static_cast<float>(row_bits(row, args.seed)) + 0.5f) * 0x1p-24f;
  return {u * weight < 1.0f ? 1u : 0u, weight};
}

// One hash decides both whether a row counts as large, with probability q, and whether it is kept,
// with probability q + (1 - q) p.
static inline DrawnRow draw_row(const TopArgs& args, std::uint32_t row, float norm) {
  constexpr std::int32_t always = 1 << 24;
  const std::int32_t bits = row_bits(row, args.seed);
  const std::int32_t some_large = norm >= args.at ? args.at_large : 0;
  const std::int32_t some_kept = norm >= args.at ? args.at_kept : args.other_kept;
  const std::int32_t large = norm >= args.above ? always : some_large;
  const std::int32_t limit = norm >= args.above ? always : some_kept;
  return {bits < limit ? 1u : 0u, bits < large ? 1.0f : args.weight};
}

}  // namespace arboost
