// Floating-point numbers -> unsigned integers of the same order. The kernels of devices use them,
// too.
#pragma once

#include <bit>
#include <cstdint>

namespace arboost {

// Adding 0 turns -0.0 into 0.0, its equal. Negative numbers are complemented, so that the largest
// magnitude comes first; non-negative ones get the highest bit.
inline std::uint64_t key_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits >> 63 ? ~bits : bits | std::uint64_t{1} << 63;
}
inline std::uint32_t key_of(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);
  return bits >> 31 ? ~bits : bits | std::uint32_t{1} << 31;
}
inline double value_of(std::uint64_t key) {
  return std::bit_cast<double>(key >> 63 ? key & ~(std::uint64_t{1} << 63) : ~key);
}
inline double value_of(std::uint32_t key) {
  return std::bit_cast<float>(key >> 31 ? key & ~(std::uint32_t{1} << 31) : ~key);
}

// A key that no number has; NaN does.
constexpr std::uint64_t no_key = ~std::uint64_t{0};

}  // namespace arboost
