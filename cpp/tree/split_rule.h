// Tests of stored codes: after a bin, or by a set of codes.
#pragma once

#include <cstdint>

namespace arboost {

// A set of one-byte codes.
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

// Test of a stored code. Codes <= bin go left, and so does the code missing_left (no_code: missing
// values go right); with by_set, the codes of a set go left, missing ones included.
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

}  // namespace arboost
