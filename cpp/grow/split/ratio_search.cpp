// Gain ratios (Quinlan 1993, "C4.5"): features of a node -> the split of one. Of each feature the
// split of the largest gain by entropy counts; among those of at least the mean gain, the one of
// the largest ratio of gain to the entropy of the two sides' weights is the node's. Without the
// mean, splits of few rows would win, whose entropy is near 0. Features are searched in parallel.
#include <algorithm>

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

SplitSearch::FeatureRatio SplitSearch::ratio_of(const GainParams& p, const GrowNode& node,
                                                std::uint32_t feature, bool in_doubt, double score,
                                                const Scratch& member_scratch, double floor,
                                                Scratch& scratch) const {
  if (member_scratch.sums != nullptr && !member_scratch.sums->varies(feature)) return {-1, 0};
  const FeatureSplit split = find_one(p, node, feature, in_doubt, member_scratch, floor, scratch);
  if (!split.is_valid) return {-1, 0};
  double left = 0, all = 0;
  for (std::size_t k = 0; k < width_; ++k) {
    left += sum_h(scratch.split.left[k]);
    all += sum_h(node.sums[k]);
  }
  const double gain = std::max(split.score - score, 0.0);
  const double entropy = times_log(all) - times_log(left) - times_log(all - left);
  return {gain, entropy > 0 ? gain / entropy : 0.0};
}

void SplitSearch::search_ratio(const GrowNode& node, std::span<const std::uint32_t> features,
                               bool in_doubt, double score, Scratch& member_scratch,
                               FunctionRef<void(SearchChunk)> each_chunk, FeatureBest& best) const {
  const GainParams p = gain_params(node);
  const double floor = best.split.score;
  member_scratch.ratios.resize(features.size());
  each_chunk([&](std::size_t first, std::size_t last, Scratch& scratch) {
    make_room(node, scratch);
    for (std::size_t j = first; j < last; ++j)
      member_scratch.ratios[j] =
          ratio_of(p, node, features[j], in_doubt, score, member_scratch, floor, scratch);
  });
  double total = 0;
  std::size_t n = 0;
  for (const FeatureRatio& feature : member_scratch.ratios) {
    if (feature.gain < 0) continue;
    total += feature.gain;
    ++n;
  }
  if (n == 0) return;
  const double least = total / static_cast<double>(n) * (1 - gain_slack);
  std::size_t chosen = features.size();
  for (std::size_t j = 0; j < features.size(); ++j) {
    const auto [gain, ratio] = member_scratch.ratios[j];
    if (gain < 0 || gain < least) continue;
    if (chosen == features.size() || ratio > member_scratch.ratios[chosen].ratio) chosen = j;
  }
  make_room(node, member_scratch);
  const FeatureSplit split =
      find_one(p, node, features[chosen], in_doubt, member_scratch, floor, member_scratch);
  take(features[chosen], split, member_scratch, best);
}

}  // namespace arboost
