// A split of a feature -> what it asks of a row, in codes as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "table/codes.h"

namespace arboost {

// Some of the codes of one byte.
struct CodeSet {
  std::uint64_t words[4] = {};  // code c: bit c % 64 of word c / 64

  bool operator==(const CodeSet&) const = default;
};

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

inline bool holds(const CodeSet& set, std::uint32_t code) {
  return set.words[code >> 6] >> (code & 63) & 1;
}
inline void put(CodeSet& set, std::uint32_t code, bool in) {
  const std::uint64_t bit = std::uint64_t{1} << (code & 63);
  std::uint64_t& word = set.words[code >> 6];
  word = in ? word | bit : word & ~bit;
}

}  // namespace

constexpr std::uint32_t no_code = ~std::uint32_t{0};

// Left are codes <= bin and the code missing_left (no_code: missing values go right); or, by_set,
// those of a set, which decides on missing values as well.
struct SplitRule {
  std::uint32_t bin;
  std::uint32_t missing_left;
  bool by_set;
  CodeSet left;
};

namespace {

inline bool goes_left(const SplitRule& rule, std::uint32_t code) {
  return rule.by_set ? holds(rule.left, code) : code <= rule.bin || code == rule.missing_left;
}

}  // namespace

// What a split of a feature is: after a bin, or a set of its levels; and where missing values go.
struct FeatureRule {
  std::uint32_t bin;
  bool missing_left;
  const CodeSet* levels;  // that go left; null: by bin
};

// In codes of the feature.
SplitRule own_rule(const Codes& codes, std::size_t feature, const FeatureRule& split);

// In codes of the feature's stored column; of a sparse feature, in its own codes.
SplitRule rule_of(const Codes& codes, std::size_t feature, const FeatureRule& split);

}  // namespace arboost
