// Storage plan -> storage of each feature's codes, and the mapping from codes to digits of stored
// columns.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>  // atomics do not move

#include "bin/codes/plan.h"
#include "table/codes.h"

namespace arboost {

// Mapping from one feature's codes to its digit.
struct ShareSource {
  std::uint32_t feature;
  bool is_thin;
  std::uint32_t usual;
  std::uint8_t digit_of[256];        // by code
  std::atomic<std::size_t> clashes;  // rows where it and an earlier share have not the usual code
};

struct DigitSource {
  std::uint32_t stride, radix;
  bool exclusive;
  std::deque<ShareSource> shares;
};

struct StoreSource {
  std::uint32_t store;
  std::deque<DigitSource> digits;
};

// Fills where, digits and n_stores of the codes, except for sparse features.
std::deque<StoreSource> lay_out(const StoragePlan& plan, const Columns& table, Codes& codes);

// True if all codes fit their digits and no exclusive digit has more conflicts than allowed.
// Otherwise moves the features that do not fit out of their digits in the plan.
bool check_layout(const std::deque<StoreSource>& sources, const Codes& codes, StoragePlan& plan);

}  // namespace arboost
