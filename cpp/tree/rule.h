// Split rules: a feature's split as a test of a stored code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "table/codes.h"
#include "tree/split_rule.h"

namespace arboost {

// Split of a feature: after a bin, or by a set of its levels, with a side for missing values.
struct FeatureRule {
  std::uint32_t bin;
  bool missing_left;
  const CodeSet* levels;  // that go left; null: by bin
};

// The split's test of the feature's own codes.
SplitRule own_rule(const Codes& codes, std::size_t feature, const FeatureRule& split);

// The split's test of the feature's stored column; for a sparse feature, of its own codes.
SplitRule rule_of(const Codes& codes, std::size_t feature, const FeatureRule& split);

}  // namespace arboost
