// Warps and sums over them, blocks, and answers to the host, for all kernels.
#pragma once

#include <cstdint>

#include "cuda/answer.h"

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

// True in all threads of the block that is the last of n to come here.
inline bool is_last(std::uint32_t* counter, std::uint32_t n) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == n - 1;
  __syncthreads();
  __threadfence();
  return last;
}

// Signals the host that everything is written; by one thread.
inline void give(const arboost::cuda::Answer& answer) {
  __threadfence_system();
  *static_cast<volatile std::uint32_t*>(answer.flag) = answer.ticket;
}

// The end of a kernel that adds to totals: all threads of all blocks come here.
inline void give_totals(const arboost::cuda::GivenTotals& totals) {
  if (!is_last(totals.n_done, gridDim.x)) return;
  const volatile std::int64_t* sums = totals.sums;  // of other blocks
  for (std::uint32_t i = threadIdx.x; i < totals.n; i += blockDim.x) totals.given[i] = sums[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) give(totals.answer);
}
