// Warps and sums over them, for all kernels.
#pragma once

#include <cstdint>

// Shared memory whose size the launch decides.
#ifndef ARBOOST_DYNAMIC_SHARED
#define ARBOOST_DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

constexpr unsigned all_lanes = 0xffffffffu;

inline std::uint32_t lane_of() {
  return threadIdx.x & 31;
}
inline std::uint32_t warp_of() {
  return threadIdx.x >> 5;
}

inline void add_to(std::int64_t* sum, std::int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
}

// The sum over a warp, in all lanes.
inline std::int64_t warp_sum(std::int64_t value) {
  for (int step = 16; step > 0; step >>= 1) value += __shfl_xor_sync(all_lanes, value, step);
  return value;
}
