// Scores -> weighted sum of the losses, in one vectorised pass.
//
// Included by isa/variant.h inside each instruction set's variant. The order of the additions does
// not depend on the vector width: the losses of a block of rows are stored, then added in eight
// lanes.
#pragma once

#include "loss/lane_sums.h"
#include "loss/pointwise.h"

namespace arboost::ARBOOST_ISA {
namespace {

double sum_of_block(const double* numbers) {
  double lanes[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < value_block; i += 8)
    for (std::size_t j = 0; j < 8; ++j) lanes[j] += numbers[i + j];
  return sum_of_lanes(lanes);
}

// values[i] += loss of row first + i, for one output.
template <class LossOfRow>
void add_values(const LossArgs& args, std::size_t first, std::size_t n, std::size_t output,
                LossOfRow loss, double* ARBOOST_RESTRICT values) {
  const std::size_t outputs = args.rows.outputs;
  const double* y = args.rows.y + first;
  const double* scores = args.rows.scores + first * outputs + output;
  if (outputs == 1)
    for (std::size_t i = 0; i < n; ++i) values[i] += loss.value(y[i], scores[i]);
  else
    for (std::size_t i = 0; i < n; ++i) values[i] += loss.value(y[i], scores[i * outputs]);
}

void softmax_values(const LossArgs& args, std::size_t first, std::size_t n,
                    double* ARBOOST_RESTRICT values) {
  const std::size_t outputs = args.rows.outputs;
  const double* y = args.rows.y + first;
  const double* scores = args.rows.scores + first * outputs;
  double highest[value_block], true_score[value_block], total[value_block];
  for (std::size_t i = 0; i < n; ++i) {
    highest[i] = scores[i * outputs];
    true_score[i] = 0;
    total[i] = 0;
  }
  for (std::size_t k = 0; k < outputs; ++k)
    for (std::size_t i = 0; i < n; ++i) {
      const double score = scores[i * outputs + k];
      highest[i] = score > highest[i] ? score : highest[i];
      true_score[i] = y[i] == static_cast<double>(k) ? score : true_score[i];
    }
  for (std::size_t k = 0; k < outputs; ++k)
    for (std::size_t i = 0; i < n; ++i) total[i] += exp_of(scores[i * outputs + k] - highest[i]);
  for (std::size_t i = 0; i < n; ++i) values[i] = log_of(total[i]) + (highest[i] - true_score[i]);
}

// Adds the first n values of a block, the rest of which is 0, times the weights of rows first ...
void add_block(double* values, const double* weight, std::size_t first, std::size_t n,
               LossValue& sums) {
  if (weight == nullptr) {
    sums.weight += static_cast<double>(n);
  } else {
    double weights[value_block];
    for (std::size_t i = 0; i < value_block; ++i) weights[i] = 0;
    for (std::size_t i = 0; i < n; ++i) weights[i] = weight[first + i];
    for (std::size_t i = 0; i < value_block; ++i) values[i] *= weights[i];
    sums.weight += sum_of_block(weights);
  }
  sums.loss += sum_of_block(values);
}

// Of a block of rows.
LossValue loss_value(const LossArgs& args, std::size_t first, std::size_t end) {
  const std::size_t n = end - first;
  double values[value_block];
  for (std::size_t i = 0; i < value_block; ++i) values[i] = 0;
  if (args.loss == Loss::softmax)
    softmax_values(args, first, n, values);
  else
    for (std::size_t k = 0; k < args.rows.outputs; ++k)
      with_loss(args, k, [&](auto loss) { add_values(args, first, n, k, loss, values); });
  LossValue sums;
  add_block(values, args.rows.weight, first, n, sums);
  return sums;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
