// Combination of per-chunk results: sums in the order of the chunks, and a common scale.
#pragma once

#include <cstddef>
#include <vector>

#include "base/parallel.h"
#include "loss/losses.h"
#include "reweight/reweight.h"

namespace arboost {

constexpr std::size_t rows_per_chunk = 8192;

LossValue total(const std::vector<LossValue>& chunks);

// The highest of all, and the sum in units of its exponential.
Weighed total(const std::vector<Weighed>& chunks);

// True if division by the sum neither overflows nor loses precision.
bool is_scale(double sum);

// Throws std::invalid_argument with the cause of an invalid sum of weights.
[[noreturn]] void refuse_weights(const double* weight, std::size_t n_rows);

// Rescales chunks, each in its own unit, so that all rows sum to `sum`.
void scale_to(double sum, const std::vector<Weighed>& chunks, const Weighed& all, double* out,
              std::size_t n_rows, Team& team);

}  // namespace arboost
