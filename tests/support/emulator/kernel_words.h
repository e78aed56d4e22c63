// The words of CUDA that kernels use, for a compiler of the host. Included before all kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "threads.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // blocks run one after another
#define ARBOOST_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(emulator::shared_memory())

#define threadIdx (emulator::thread().index)
#define blockIdx (emulator::launch().block)
#define blockDim (emulator::launch().block_size)
#define gridDim (emulator::launch().grid_size)

using std::max;
using std::min;

struct alignas(8) uint2 {
  std::uint32_t x, y;
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};

inline void __syncthreads() {
  emulator::wait_for_block();
}
inline void __syncwarp(unsigned mask = ~0u) {
  emulator::exchange(mask, {emulator::Word::none, 0, 0});
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

template <class T>
T __ldg(const T* at) {
  return *at;
}

template <class T>
T exchanged(unsigned mask, T value, std::uint32_t lane) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = emulator::exchange(mask, {emulator::Word::shuffle, bits, lane});
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const std::uint32_t own = threadIdx.x & 31;
  return exchanged(mask, value, (own & ~(width - 1u)) | (lane & (width - 1u)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int step) {
  return exchanged(mask, value, (threadIdx.x & 31) ^ step);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32) {
  const std::uint32_t own = threadIdx.x & 31;
  return exchanged(mask, value, (own & (width - 1u)) < step ? own : own - step);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32) {
  const std::uint32_t own = threadIdx.x & 31;
  return exchanged(mask, value, (own & (width - 1u)) + step >= unsigned(width) ? own : own + step);
}
inline unsigned __ballot_sync(unsigned mask, bool yes) {
  return static_cast<unsigned>(emulator::exchange(mask, {emulator::Word::ballot, yes, 0}));
}
inline bool __any_sync(unsigned mask, bool yes) {
  return __ballot_sync(mask, yes) != 0;
}
inline bool __all_sync(unsigned mask, bool yes) {
  return __ballot_sync(mask, yes) == mask;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return static_cast<unsigned>(emulator::exchange(mask, {emulator::Word::match, bits, 0}));
}

inline int __popc(unsigned bits) {
  return std::popcount(bits);
}
inline int __popcll(unsigned long long bits) {
  return std::popcount(bits);
}
inline int __clz(int bits) {
  return std::countl_zero(static_cast<unsigned>(bits));
}
inline int __ffs(int bits) {
  return bits == 0 ? 0 : 1 + std::countr_zero(static_cast<unsigned>(bits));
}
inline double __longlong_as_double(long long bits) {
  return std::bit_cast<double>(bits);
}
inline long long __double_as_longlong(double value) {
  return std::bit_cast<long long>(value);
}
inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}
inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}
inline float __int_as_float(int bits) {
  return std::bit_cast<float>(bits);
}
inline int __float_as_int(float value) {
  return std::bit_cast<int>(value);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

// A thread is not interrupted between two meetings, so that plain operations are atomic.
template <class T, class Change>
T changed(T* at, Change change) {
  emulator::pause();
  const T before = *at;
  *at = change(before);
  return before;
}
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  using Wraps =
      std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  return changed(at, [=](T old) { return T(Wraps(old) + Wraps(value)); });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return changed(at, [=](T old) { return std::min(old, value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return changed(at, [=](T old) { return std::max(old, value); });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return changed(at, [=](T) { return value; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return changed(at, [=](T old) { return old | value; });
}
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
  return changed(at, [=](T old) { return old & value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return changed(at, [=](T old) { return old == expected ? value : old; });
}
