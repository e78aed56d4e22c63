// Sums of 64 bits in shared memory, as two words each: atomics of 64 bits are slow there.
#pragma once

#include "cuda/kernels/warps.cuh"

inline void add_to_words(std::uint32_t* words, std::int64_t value) {
  const auto low = static_cast<std::uint32_t>(value);
  const std::uint32_t before = atomicAdd(&words[0], low);
  const std::uint32_t carry = before + low < before ? 1 : 0;
  const std::uint32_t high = static_cast<std::uint32_t>(value >> 32) + carry;
  if (high != 0) atomicAdd(&words[1], high);
}

// Adds n of them to sums in device memory; by all threads of the block.
inline void add_words(const std::uint32_t* words, std::uint32_t n, std::int64_t* sums) {
  for (std::uint32_t j = threadIdx.x; j < n; j += blockDim.x) {
    const std::uint64_t sum = static_cast<std::uint64_t>(words[2 * j + 1]) << 32 | words[2 * j];
    if (sum != 0) add_to(sums + j, static_cast<std::int64_t>(sum));
  }
}
