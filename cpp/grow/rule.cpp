#include "grow/rule.h"

namespace arboost {

SplitRule rule_of(const Codes& codes, std::size_t feature, const FeatureRule& split) {
  const std::uint32_t missing = codes.n_bins[feature];
  SplitRule rule{split.bin, split.missing_left ? missing : no_code, split.levels != nullptr, {}};
  if (!rule.by_set) return rule;
  rule.left = *split.levels;
  put(rule.left, missing, split.missing_left);
  return rule;
}

}  // namespace arboost
