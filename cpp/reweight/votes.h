// Scores of classes -> margins and misclassified rows; margins -> row weights. Vectorised passes, 1
// to 2 ns a row.
//
// Included by isa/variant.h inside each instruction set's variant. Sums are those of
// loss/value.h.
#pragma once

#include <limits>

#include "loss/functions.h"
#include "loss/value.h"
#include "reweight/reweight.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Margins of n rows of a block, and 1 for misclassified rows. x - x is 0, or NaN if x is not
// finite: a score that is not finite makes the margin NaN.
void vote_of_two(const double* ARBOOST_RESTRICT y, const double* ARBOOST_RESTRICT scores,
                 std::size_t n, double* ARBOOST_RESTRICT margins, double* ARBOOST_RESTRICT wrong) {
  for (std::size_t i = 0; i < n; ++i) {
    const double sign = y[i] == 1.0 ? 1.0 : (y[i] == 0.0 ? -1.0 : no_number);
    const double class_voted = scores[i] > 0.0 ? 1.0 : 0.0;
    margins[i] = sign * scores[i] + (scores[i] - scores[i]);
    wrong[i] = class_voted == y[i] ? 0.0 : 1.0;
  }
}

void vote_of_many(const double* ARBOOST_RESTRICT y, const double* ARBOOST_RESTRICT scores,
                  std::size_t n, std::size_t outputs, double* ARBOOST_RESTRICT margins,
                  double* ARBOOST_RESTRICT wrong) {
  double highest[value_block], voted[value_block], finite[value_block];
  for (std::size_t i = 0; i < n; ++i) {
    highest[i] = scores[i * outputs];
    voted[i] = 0.0;
    margins[i] = no_number;
    finite[i] = 0.0;
  }
  for (std::size_t k = 0; k < outputs; ++k) {
    const auto label = static_cast<double>(k);
    for (std::size_t i = 0; i < n; ++i) {
      const double score = scores[i * outputs + k];
      const bool higher = score > highest[i];
      highest[i] = higher ? score : highest[i];
      voted[i] = higher ? label : voted[i];
      margins[i] = y[i] == label ? score : margins[i];
      finite[i] += score - score;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    margins[i] += finite[i];
    wrong[i] = voted[i] == y[i] ? 0.0 : 1.0;
  }
}

LossValue vote(const LossRows& rows, std::size_t begin, std::size_t end, double* margins) {
  LossValue sums;
  double of_label[value_block], wrong[value_block];
  for (std::size_t first = begin; first < end; first += value_block) {
    const std::size_t n = end - first < value_block ? end - first : value_block;
    const double* scores = rows.scores + first * rows.outputs;
    for (std::size_t i = n; i < value_block; ++i) wrong[i] = 0;
    if (rows.outputs == 1)
      vote_of_two(rows.y + first, scores, n, of_label, wrong);
    else
      vote_of_many(rows.y + first, scores, n, rows.outputs, of_label, wrong);
    for (std::size_t i = 0; i < n; ++i) wrong[i] += of_label[i] - of_label[i];
    if (rows.weight != nullptr)
      for (std::size_t i = 0; i < n; ++i) wrong[i] += rows.weight[first + i] >= 0 ? 0.0 : no_number;
    if (margins != nullptr)
      for (std::size_t i = 0; i < n; ++i) margins[first - begin + i] = of_label[i];
    add_block(wrong, rows.weight, first, n, sums);
  }
  return sums;
}

// The largest -margin of rows of nonzero weight. NaN are skipped: they show in the sums.
double highest_of(const double* margins, const double* weight, std::size_t n) {
  constexpr std::size_t lanes = 16;
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  double highest[lanes];
  for (std::size_t j = 0; j < lanes; ++j) highest[j] = lowest;
  const auto take = [&](std::size_t i, std::size_t j) {
    const bool counts = weight == nullptr || weight[i] > 0;
    const double negative_margin = counts ? -margins[i] : lowest;
    highest[j] = negative_margin > highest[j] ? negative_margin : highest[j];
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t j = 0; j < lanes; ++j) take(i + j, j);
  for (; i < n; ++i) take(i, 0);
  double all = lowest;
  for (std::size_t j = 0; j < lanes; ++j) all = highest[j] > all ? highest[j] : all;
  return all;
}

Weighed weigh(const double* margins, const double* weight, std::size_t n, double* out) {
  Weighed weighed{highest_of(margins, weight, n), 0};
  double values[value_block];
  for (std::size_t first = 0; first < n; first += value_block) {
    const std::size_t size = n - first < value_block ? n - first : value_block;
    const double* block_margins = margins + first;
    for (std::size_t i = size; i < value_block; ++i) values[i] = 0;
    for (std::size_t i = 0; i < size; ++i) values[i] = exp_of(-block_margins[i] - weighed.highest);
    if (weight != nullptr)
      for (std::size_t i = 0; i < size; ++i) values[i] *= weight[first + i];
    for (std::size_t i = 0; i < size; ++i) out[first + i] = values[i];
    weighed.sum += sum_of_block(values);
  }
  return weighed;
}

LossValue weighted_sum(const double* values, const double* weight, std::size_t n) {
  LossValue sums;
  double block[value_block];
  for (std::size_t first = 0; first < n; first += value_block) {
    const std::size_t size = n - first < value_block ? n - first : value_block;
    for (std::size_t i = size; i < value_block; ++i) block[i] = 0;
    for (std::size_t i = 0; i < size; ++i) block[i] = values[first + i];
    add_block(block, weight, first, size, sums);
  }
  return sums;
}

void exponentials(double* numbers, std::size_t n) {
  for (std::size_t i = 0; i < n; i += exp_block)
    exponentials_in_place(numbers + i, n - i < exp_block ? n - i : exp_block);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
