// Results that kernels write to the host's memory themselves.
#pragma once

#include <cstdint>

namespace arboost::cuda {

// The host waits until the flag is the ticket, or a later one.
struct Answer {
  std::uint32_t* flag;
  std::uint32_t ticket;
};

// Sums in device memory that the last block gives to the host.
struct GivenTotals {
  std::int64_t* sums;
  std::uint32_t* n_done;  // blocks
  std::int64_t* given;    // in the host's memory
  std::uint32_t n;
  Answer answer;
};

}  // namespace arboost::cuda
