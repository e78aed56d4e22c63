// A plan -> where each feature's codes are, and how they are put there.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>  // atomics do not move
#include <vector>

#include "bin/codes/plan.h"
#include "table/codes.h"

namespace arboost {

// What a feature adds to its digit.
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

// Fills where, digits and n_stores of the codes, but the places of sparse features.
std::deque<StoreSource> lay_out(const StoragePlan& plan, const Columns& table, Codes& codes);

// Whether the stored columns are right: all codes had room in their digits, and no exclusive one
// has more clashes than it may. If not, the plan is changed so that it will be the next time.
bool check_layout(const std::deque<StoreSource>& sources, const Codes& codes, StoragePlan& plan);

}  // namespace arboost
