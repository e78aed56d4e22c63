// Split of a feature -> split of a stored column. A shared column costs 256 decodings.
#include "tree/rule.h"

namespace arboost {

SplitRule own_rule(const Codes& codes, std::size_t feature, const FeatureRule& split) {
  const std::uint32_t missing = codes.n_bins[feature];
  SplitRule rule{split.bin, split.missing_left ? missing : no_code, split.levels != nullptr, {}};
  if (rule.by_set) {
    rule.left = *split.levels;
    put(rule.left, missing, split.missing_left);
  }
  return rule;
}

SplitRule rule_of(const Codes& codes, std::size_t feature, const FeatureRule& split) {
  const SplitRule rule = own_rule(codes, feature, split);
  if (codes.where[feature].kind != Storage::shared) return rule;
  CodeSet stored;
  for (std::uint32_t code = 0; code < 256; ++code)
    put(stored, code, goes_left(rule, codes.decode(feature, code)));
  return {0, no_code, true, stored};
}

}  // namespace arboost
