// Groups of threads that work on one node: a warp, or a block. All threads of a group make the same
// calls.
#pragma once

#include <cstring>  // memcpy

#include "cuda/kernels/warps.cuh"

// The value of another lane, of any plain type.
template <class T>
inline T from_lane(const T& value, int step) {
  static_assert(sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];
  T other;
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words) word = __shfl_xor_sync(all_lanes, word, step);
  memcpy(&other, words, sizeof(T));
  return other;
}

struct WarpGroup {
  static constexpr std::uint32_t size = 32;

  static std::uint32_t rank() { return lane_of(); }
  static void sync() { __syncwarp(); }
  static bool any(bool is) { return __any_sync(all_lanes, is) != 0; }
  // join(a, b) over all threads, the same in each of them.
  template <class T, class Join>
  static T all(T value, Join join) {
#pragma unroll 1  // compilation takes long
    for (int step = 16; step > 0; step >>= 1) value = join(value, from_lane(value, step));
    return value;
  }
  // The sum over the threads before this one.
  static std::int64_t sum_before(std::int64_t value) {
    std::int64_t sum = value;
    for (int step = 1; step < 32; step <<= 1) {
      const std::int64_t other = __shfl_up_sync(all_lanes, sum, step);
      if (static_cast<int>(lane_of()) >= step) sum += other;
    }
    return sum - value;
  }
};

struct BlockGroup {
  static constexpr std::uint32_t size = 256, n_warps = size / 32;

  static std::uint32_t rank() { return threadIdx.x; }
  static void sync() { __syncthreads(); }
  static bool any(bool is) {
    return all(is ? 1u : 0u, [](unsigned a, unsigned b) { return a | b; }) != 0;
  }
  template <class T, class Join>
  static T all(T value, Join join) {
    __shared__ std::uint64_t buffer[n_warps][(sizeof(T) + 7) / 8];
    value = WarpGroup::all(value, join);
    if (lane_of() == 0) memcpy(buffer[warp_of()], &value, sizeof(T));
    __syncthreads();
    memcpy(&value, buffer[0], sizeof(T));
#pragma unroll 1
    for (std::uint32_t w = 1; w < n_warps; ++w) {
      T other;
      memcpy(&other, buffer[w], sizeof(T));
      value = join(value, other);
    }
    __syncthreads();
    return value;
  }
  static std::int64_t sum_before(std::int64_t value) {
    __shared__ std::int64_t buffer[n_warps];
    std::int64_t sum = WarpGroup::sum_before(value);
    if (lane_of() == 31) buffer[warp_of()] = sum + value;
    __syncthreads();
    for (std::uint32_t w = 0; w < warp_of(); ++w) sum += buffer[w];
    __syncthreads();
    return sum;
  }
};
