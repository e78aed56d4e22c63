// Gain ratios (Quinlan 1993, "C4.5"): features of a node -> the split of one. Of each feature the
// split of the largest gain by entropy counts; among those of at least the mean gain, the one of
// the largest ratio of gain to the entropy of the two sides' weights is the node's. Without the
// mean, splits of few rows would win, whose entropy is near 0. Features are searched in parallel.
#include <algorithm>

#include "grow/search/node_score.h"
#include "grow/split/split_search.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

// Rounding of equal gains and their mean.
constexpr double gain_slack = 1e-9;

double times_log(double weight) {
  return weight > 0 ? weight * loss_kernels().logarithm(weight) : 0.0;
}

}  // namespace

SplitSearch::FeatureRatio SplitSearch::ratio_of(const GrowNode& node, const FeatureSplit& split,
                                                double score, const Scratch& scratch) const {
  const auto left = static_cast<double>(sum_of_h(scratch.split.left.data(), width_));
  const auto all = static_cast<double>(sum_of_h(node.sums.data(), width_));
  const double gain = std::max(split.score - score, 0.0);
  const double entropy = times_log(all) - times_log(left) - times_log(all - left);
  return {gain, entropy > 0 ? gain / entropy : 0.0};
}

// The number of features if none has a split.
std::size_t SplitSearch::best_ratio(std::span<const FeatureRatio> ratios) {
  double total = 0;
  std::size_t n = 0;
  for (const FeatureRatio& feature : ratios) {
    if (feature.gain < 0) continue;
    total += feature.gain;
    ++n;
  }
  if (n == 0) return ratios.size();
  const double least = total / static_cast<double>(n) * (1 - gain_slack);
  std::size_t chosen = ratios.size();
  for (std::size_t j = 0; j < ratios.size(); ++j) {
    const auto [gain, ratio] = ratios[j];
    if (gain < 0 || gain < least) continue;
    if (chosen == ratios.size() || ratio > ratios[chosen].ratio) chosen = j;
  }
  return chosen;
}

}  // namespace arboost
