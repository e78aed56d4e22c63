// Best split of a node whose histogram has no counts, where hessians leave its leaf sizes in doubt
// (grow/rows/leaf_sizes.h). One pass over the node's rows for each split that is checked.
#include "grow/split/sources.h"

namespace arboost {

bool SplitSearch::has_enough_rows(const GrowNode& node, std::uint32_t feature,
                                  const FeatureSplit& split, const std::int64_t* left_sums,
                                  Scratch& scratch) const {
  if (node.histogram == nullptr || !sizes_.in_doubt()) return true;
  if (sizes_.is_certain(feature, split, left_sums, node.sums.data())) return true;
  const auto counts = sizes_.count(feature, rows_.elements(node), node.n_rows(), scratch.counts);
  return sizes_.has_enough(feature, split, counts);
}

// The best split with counted rows, in place of one that has too few on a side.
FeatureSplit SplitSearch::find_counted(const HistogramSource& source, const GainParams& params,
                                       std::uint32_t feature, double floor,
                                       Scratch& scratch) const {
  const GrowNode& node = source.node;
  const auto counts = sizes_.count(feature, rows_.elements(node), node.n_rows(), scratch.counts);
  const std::int64_t* sums = source.sums(feature, scratch);
  std::vector<std::int64_t>& counted = scratch.counted;
  counted.resize(counts.size() * channels_);
  for (std::size_t code = 0; code < counts.size(); ++code) {
    for (std::size_t k = 0; k < width_; ++k)
      counted[code * channels_ + k] = sums[code * width_ + k];
    counted[code * channels_ + width_] = counts[code];
  }
  GainParams p = params;
  p.min_h = policy_.gain().min_h;
  p.channels = policy_.gain().channels;
  return grow_kernels().find_split(p, counted.data(), codes_of(feature), node.sums.data(), floor,
                                   scratch.split);
}

}  // namespace arboost
