// What chunks of rows found, put together: sums in their order, and one scale for all.
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

// Numbers can be divided by it, and keep their bits.
bool is_scale(double sum);

// Throws std::invalid_argument that says what is wrong with weights whose sum is no scale.
[[noreturn]] void refuse_weights(const double* weight, std::size_t n_rows);

// Brings chunks, each in its own unit, to one in which they sum up to `sum`.
void scale_to(double sum, const std::vector<Weighed>& chunks, const Weighed& all, double* out,
              std::size_t n_rows, Team& team);

}  // namespace arboost
