// Grouped categories: codes that are groups of levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tree/split_rule.h"

namespace arboost {

// The groups of one category (grow/search/groups.h).
struct LevelGroups {
  std::vector<std::uint8_t> order;  // all codes, in the order of their mean targets
  CodeSet shared;                   // codes of several levels
};
// By feature. A type of its own: headers that kernels of a device share name it only.
struct GroupedFeatures : std::unordered_map<std::uint32_t, LevelGroups> {};

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

// The groups of a feature; null for any other feature than a grouped category.
inline const LevelGroups* groups_of(const GroupedFeatures* grouped, std::size_t feature) {
  if (grouped == nullptr || grouped->empty()) return nullptr;
  const auto entry = grouped->find(static_cast<std::uint32_t>(feature));
  return entry == grouped->end() ? nullptr : &entry->second;
}

// The first groups in the order of their means.
inline CodeSet first_groups(const LevelGroups& groups, std::size_t n) {
  CodeSet set;
  for (std::size_t i = 0; i < n; ++i) put(set, groups.order[i], true);
  return set;
}

}  // namespace
}  // namespace arboost
