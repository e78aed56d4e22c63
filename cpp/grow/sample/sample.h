// The rows that a tree is grown on: all of them, a share drawn at random or by gradient, or as many
// draws with replacement as are wanted. A few linear passes, in parallel; what is drawn are hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/parallel.h"
#include "loss/apply.h"

namespace arboost {

// Positions of training rows, ascending, and what each row's gradient and hessian are multiplied
// by; no weights: 1.
struct Sample {
  std::size_t size = 0;
  bool weighted = false;
  Buffer<std::uint32_t> positions;
  Buffer<float> weights;

  const float* weights_or_null() const { return weighted ? weights.data() : nullptr; }
};

// Each row with probability `rate`; at least one.
void sample_uniform(std::size_t n_rows, double rate, std::uint32_t seed, Sample& out, Team& team);

// Row i with probability p_i = min(1, s_i / mu), s_i^2 = sum over the outputs of g^2 + lambda h^2,
// where mu makes the expected size about rate * n_rows, and with the weight 1 / p_i: sums over the
// sample have the mean of sums over all rows, and among all such samples of this size these have
// the least variance (Ibragimov and Gusev 2019, "Minimal Variance Sampling", theorem 2).
void sample_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t seed, Sample& out, Team& team);

// Gradient-based one-side sampling (Ke et al. 2017, "LightGBM", algorithm 2): the top_rate * n_rows
// rows of the largest gradients, by the norm over the outputs of g, and of all others each with
// probability other_rate / (1 - top_rate), with its inverse for a weight. Of more than 131,072
// rows, a sample says how large the last large one is. Among rows whose norms are within 0.2 % of
// that, chance says which of them count as large: the shares are right and sums over the sample
// have the mean of sums over all rows, whatever the ties.
void sample_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t seed, Sample& out, Team& team);

// The seed of a fit, and the number of the draw.
struct DrawSeed {
  std::uint64_t seed, draw;
};

// Draws with replacement, in proportion to weights from 0 on: how often a row was drawn is its
// weight in the sample, and rows that never were are not in it (Efron 1979, "Bootstrap methods"). A
// row that has less than 2^-62 of all weight is never drawn. Throws std::invalid_argument for
// weights that are negative or not finite, or sum up to nothing.
void bootstrap_by_weight(std::span<const double> weight, std::size_t n_draws, const DrawSeed& seed,
                         Sample& out, Team& team);

// The same with equal weights.
void bootstrap(std::size_t n_rows, std::size_t n_draws, const DrawSeed& seed, Sample& out,
               Team& team);

}  // namespace arboost
