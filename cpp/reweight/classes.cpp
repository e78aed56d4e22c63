// Scores of classes -> distribution over rows. Two passes over the rows, parallel over chunks.
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "loss/loss_kernels.h"
#include "reweight/reweight.h"
#include "reweight/reweight_kernels.h"
#include "reweight/scale.h"

namespace arboost {
namespace {

// Throws with the cause of a NaN or infinite sum.
[[noreturn]] void refuse(const LossRows& rows) {
  const std::size_t n_classes = rows.outputs == 1 ? 2 : rows.outputs;
  for (std::size_t i = 0; i < rows.n_rows; ++i) {
    const std::string row = " in row " + std::to_string(i);
    const double y = rows.y[i];
    if (!(y >= 0 && y < static_cast<double>(n_classes) && y == std::floor(y)))
      throw std::invalid_argument("y is " + std::to_string(y) + row + ", not a class of 0 to " +
                                  std::to_string(n_classes - 1));
    for (std::size_t k = 0; k < rows.outputs; ++k)
      if (!std::isfinite(rows.scores[i * rows.outputs + k]))
        throw std::invalid_argument("a score is infinite or not a number" + row);
  }
  refuse_weights(rows.weight, rows.n_rows);
}

}  // namespace

ScoresOfClasses class_distribution(const LossRows& rows, double* out, Team& team) {
  const ReweightKernels& k = reweight_kernels();
  const std::size_t n_chunks = (rows.n_rows + rows_per_chunk - 1) / rows_per_chunk;
  std::vector<LossValue> votes(n_chunks);
  std::vector<Weighed> chunks(n_chunks);
  team.for_chunks(0, rows.n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t chunk = begin / rows_per_chunk;
    const double* weight = rows.weight == nullptr ? nullptr : rows.weight + begin;
    votes[chunk] = k.vote(rows, begin, end, out + begin);
    chunks[chunk] = k.weigh(out + begin, weight, end - begin, out + begin);
  });
  const LossValue vote = total(votes);
  const Weighed all = total(chunks);
  if (!std::isfinite(vote.loss) || !is_scale(vote.weight) || !is_scale(all.sum)) refuse(rows);
  scale_to(static_cast<double>(rows.n_rows), chunks, all, out, rows.n_rows, team);
  return {all.highest + (loss_kernels().logarithm(all.sum) - loss_kernels().logarithm(vote.weight)),
          vote.loss / vote.weight};
}

double weighted_error(const LossRows& rows, Team& team) {
  std::vector<LossValue> votes((rows.n_rows + rows_per_chunk - 1) / rows_per_chunk);
  team.for_chunks(0, rows.n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    votes[begin / rows_per_chunk] = reweight_kernels().vote(rows, begin, end, nullptr);
  });
  const LossValue vote = total(votes);
  if (!std::isfinite(vote.loss) || !is_scale(vote.weight)) refuse(rows);
  return vote.loss / vote.weight;
}

}  // namespace arboost
