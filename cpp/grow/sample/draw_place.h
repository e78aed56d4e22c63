// Random places on a line, for draws with replacement.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace arboost {

// In an unnamed namespace: kernels of a device have a copy of their own.
namespace {

// The high 64 bits of a product: random bits times n are a random number below n.
inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__) && !defined(__CUDACC_RTC__)
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#else
  const std::uint64_t mask = 0xffffffff;
  const std::uint64_t low = (a & mask) * (b & mask);
  const std::uint64_t high_low = (a >> 32) * (b & mask) + (low >> 32);
  const std::uint64_t low_high = (a & mask) * (b >> 32) + (high_low & mask);
  return (a >> 32) * (b >> 32) + (high_low >> 32) + (low_high >> 32);
#endif
}

// The place of draw j of a sample, below `length`.
inline std::uint64_t draw_place(std::uint64_t seed, std::uint64_t sample, std::uint64_t j,
                                std::uint64_t length) {
  return high_product(counter_hash(seed, Purpose::bootstrap, sample, j), length);
}

}  // namespace
}  // namespace arboost
