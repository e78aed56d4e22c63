// Row sampling: training rows -> the rows of a tree, drawn uniformly, by gradient, or with
// replacement (bootstrap). A few linear passes, parallel over rows; draws are hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/parallel.h"
#include "base/random.h"
#include "grow/kernels/draw_row.h"
#include "loss/apply.h"

namespace arboost {

// Positions of sampled training rows, ascending, and the weights of their gradients and hessians;
// without weights: 1.
struct Sample {
  std::size_t size = 0;
  bool weighted = false;
  bool on_device = false;    // positions and weights are in the memory of the device of the rows
  float largest_weight = 1;  // on a device
  Buffer<std::uint32_t> positions;
  Buffer<float> weights;

  const float* weights_or_null() const { return weighted ? weights.data() : nullptr; }
};

// Plans of draws without replacement, for any place where the rows are.

// Rows at equal distances whose norms are counted for a plan: row k * step, for k < n.
struct NormRows {
  std::size_t step, n;
};
DrawArgs uniform_plan(double rate, std::uint32_t seed);
// By gradient. norms_of takes the pairs from the host's memory.
NormArgs norms_of(const Gradients& gradients, double reg_lambda, bool squared);
NormRows rows_by_gradient(std::size_t n_rows);
DrawArgs plan_by_gradient(const NormArgs& norms, std::span<const float> counted, double rate,
                          std::uint32_t seed);
// One-sided.
NormRows rows_one_side(std::size_t n_rows);
TopArgs plan_one_side(const NormArgs& norms, std::span<const float> counted, double top_rate,
                      double other_rate, std::uint32_t seed);
// The row of a sample that would be empty otherwise: the first by hash.
std::uint32_t row_of_empty(std::size_t n_rows, std::uint32_t seed);

// The seed of a fit, and the number of the draw.
struct DrawSeed {
  std::uint64_t seed, draw;
};

// The random bits of one draw without replacement.
inline std::uint32_t draw_bits(const DrawSeed& seed) {
  return static_cast<std::uint32_t>(counter_hash(seed.seed, Purpose::row_sample, seed.draw, 0));
}

// Each row with probability `rate`; at least one.
void sample_uniform(std::size_t n_rows, double rate, std::uint32_t seed, Sample& out, Team& team);
// The same rows, of [begin, end) only and counted from `begin`; there may be none.
void sample_uniform(std::size_t begin, std::size_t end, double rate, std::uint32_t seed,
                    Sample& out, Team& team);

// Row i with probability p_i = min(1, s_i / mu), s_i^2 = sum over the outputs of g^2 + lambda h^2,
// and with the weight 1 / p_i, where mu makes the expected size about rate * n_rows. Sums over the
// sample are unbiased, with the least variance among all such samples of this size (Ibragimov and
// Gusev 2019, "Minimal Variance Sampling", theorem 2).
void sample_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t seed, Sample& out, Team& team);

// Gradient-based one-side sampling (Ke et al. 2017, "LightGBM", algorithm 2): the top_rate * n_rows
// rows of the largest gradients, by the norm over the outputs of g, and of all others each with
// probability other_rate / (1 - top_rate), with its inverse for a weight. With more than 131,072
// rows, the threshold of large norms is estimated from a sample. Among rows whose norms are within
// 0.2 % of it, chance decides which count as large: the shares are right and sums over the sample
// are unbiased, whatever the ties.
void sample_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t seed, Sample& out, Team& team);

// Chances of rows that are drawn in proportion to nonnegative weights: the ends of their stretches
// of an interval. A row with less than 2^-62 of the total weight is never drawn. Throws
// std::invalid_argument for weights that are negative or not finite, or all 0.
struct DrawChances {
  DrawChances(std::span<const double> weight, Team& team);

  Buffer<std::uint64_t> ends;
  std::uint64_t version;  // among all chances
};

// Bootstrap sample: draws with replacement; the count of a row is its weight in the sample, and
// rows that were never drawn are left out (Efron 1979, "Bootstrap methods").
void bootstrap(const DrawChances& chances, std::size_t n_draws, const DrawSeed& seed, Sample& out,
               Team& team);
// The same with equal chances.
void bootstrap(std::size_t n_rows, std::size_t n_draws, const DrawSeed& seed, Sample& out,
               Team& team);

}  // namespace arboost
