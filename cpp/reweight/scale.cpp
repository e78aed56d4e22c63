// Chunks of rows -> one sum and one scale. Linear in rows, parallel over chunks.
#include "reweight/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "loss/loss_kernels.h"

namespace arboost {
namespace {

// e^(a - b) as all machines compute it.
double exp_of_difference(double a, double b) {
  double e = a - b;
  loss_kernels().exponentials(&e, 1);
  return e;
}

}  // namespace

LossValue total(const std::vector<LossValue>& chunks) {
  LossValue all;
  for (const LossValue& chunk : chunks) {
    all.loss += chunk.loss;
    all.weight += chunk.weight;
  }
  return all;
}

Weighed total(const std::vector<Weighed>& chunks) {
  Weighed all{-std::numeric_limits<double>::infinity(), 0};
  for (const Weighed& chunk : chunks) all.highest = std::max(all.highest, chunk.highest);
  for (const Weighed& chunk : chunks)
    all.sum += chunk.sum * exp_of_difference(chunk.highest, all.highest);
  return all;
}

bool is_scale(double sum) {
  // The smallest sum whose inverse, times 2^32 rows, is finite.
  return sum >= 0x1p-980 && std::isfinite(sum);
}

void refuse_weights(const double* weight, std::size_t n_rows) {
  double largest = 0;
  for (std::size_t i = 0; weight != nullptr && i < n_rows; ++i) {
    if (!(weight[i] >= 0 && std::isfinite(weight[i])))
      throw std::invalid_argument("the weight of row " + std::to_string(i) + " is " +
                                  std::to_string(weight[i]) +
                                  ", but weights must be finite numbers from 0 on");
    largest = std::max(largest, weight[i]);
  }
  if (largest == 0) throw std::invalid_argument("no row has a weight above 0");
  throw std::invalid_argument(
      "the sum of the weights is too large or too small for a double: bring them to a mean near 1");
}

void scale_to(double sum, const std::vector<Weighed>& chunks, const Weighed& all, double* out,
              std::size_t n_rows, Team& team) {
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    const double highest = chunks[begin / rows_per_chunk].highest;
    const double factor = exp_of_difference(highest, all.highest) * (sum / all.sum);
    for (std::size_t i = begin; i < end; ++i) out[i] *= factor;
  });
}

}  // namespace arboost
