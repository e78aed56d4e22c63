// Best split of a node whose histogram has no counts, where hessians leave its leaf sizes in doubt
// (grow/rows/leaf_sizes.h). One pass over the node's rows for each split that is checked.
#include "grow/split/split_search.h"

namespace arboost {

bool SplitSearch::has_enough_rows(const GrowNode& node, std::uint32_t feature,
                                  const FeatureSplit& split, const std::int64_t* left_sums,
                                  Scratch& scratch) const {
  if (node.histogram == nullptr || !sizes_.in_doubt()) return true;
  if (sizes_.is_certain(feature, split, left_sums, node.sums.data())) return true;
  const auto counts = sizes_.count(feature, rows_.elements(node), node.n_rows(), scratch.counts);
  return sizes_.has_enough(feature, split, counts);
}

// The result of find_split with counted rows. The split that was found without is replaced if it
// has too few rows on a side.
FeatureSplit SplitSearch::find_counted(const GainParams& params, const GrowNode& node,
                                       std::uint32_t feature, const Scratch& member_scratch,
                                       double floor, Scratch& scratch) const {
  const FeatureSplit split = find_split(params, node, feature, member_scratch, floor, scratch);
  if (!split.is_valid || has_enough_rows(node, feature, split, scratch.split.left.data(), scratch))
    return split;
  const auto counts = sizes_.count(feature, rows_.elements(node), node.n_rows(), scratch.counts);
  const std::int64_t* totals = node.sums.data();
  const std::int64_t* sums = codes_.where[feature].kind == Storage::single
                                 ? own_slots(node, feature)
                                 : member_scratch.sums->of(feature, totals, scratch.buffer);
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
  const GrowKernels& k = grow_kernels();
  return (codes_.has_levels(feature) ? k.find_set : k.find_split)(
      p, counted.data(), codes_.n_bins[feature], codes_.has_missing[feature] != 0, totals, floor,
      scratch.split);
}

}  // namespace arboost
