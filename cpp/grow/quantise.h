// Fixed-point gradient pairs (30 bits) -> narrow pairs (15 bits each) that travel with the row ids.
//
// Rounding is stochastic, so that sums over many rows keep their mean: with u uniform in [0, 1),
// E floor(x + u) = x. u is a hash of (seed, row), so it depends on no order, thread or chunk.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include "kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

// 32 well-mixed bits from a row id and a seed; two of its 16-bit halves serve g and h.
inline std::uint32_t mix(std::uint32_t row, std::uint32_t seed) {
  std::uint32_t x = (row ^ seed) * 0x9e3779b1u + seed;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  x *= 0x297a2d39u;
  return x ^ (x >> 15);
}

// Both shifts are at least 16: the random bits fill the highest 16 of the bits that are dropped.
void quantise_narrow(const FixedPair* pairs, std::size_t begin, std::size_t end, int g_shift,
                     int h_shift, std::uint32_t seed, Element* elements) {
  for (std::size_t row = begin; row < end; ++row) {
    const auto id = static_cast<std::uint32_t>(row);
    const std::uint32_t u = mix(id, seed);
    const auto u_g = static_cast<std::int32_t>((u & 0xffff) << (g_shift - 16));
    const auto u_h = static_cast<std::int32_t>((u >> 16) << (h_shift - 16));
    const std::int32_t g = (pairs[row].g + u_g) >> g_shift;
    const std::int32_t h = (pairs[row].h + u_h) >> h_shift;
    const auto pair = static_cast<std::uint32_t>(g * 65536 + h);
    elements[row] = static_cast<Element>(pair) << 32 | id;
  }
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
