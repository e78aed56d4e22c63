// Fixed-point gradient pairs (30 bits) -> narrow pairs (15 bits each) that travel with the row ids.
//
// Stochastic rounding keeps sums unbiased: with u uniform in [0, 1), E floor(x + u) = x. u is a
// hash, so the result does not depend on order, threads or chunks. Single-threaded; callers split
// the rows.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "base/random.h"  // short_hash
#include "grow/kernels/grow_kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Both shifts are at least 16: the random bits fill the highest 16 of the bits that are dropped.
// A row's random bits come from its position among the training rows of all workers.
void quantise_narrow(const NarrowArgs& args, std::size_t begin, std::size_t end,
                     Element* elements) {
  const int g_shift = args.g_shift, h_shift = args.h_shift;
  const std::uint32_t seed = args.seed, first = args.first_position;
  const FixedPair* ARBOOST_RESTRICT pairs = args.pairs;
  const auto element = [=](std::size_t i, std::uint32_t position, RowId row) {
    const std::uint32_t u = short_hash(first + position, seed);
    const auto u_g = static_cast<std::int32_t>((u & 0xffff) << (g_shift - 16));
    const auto u_h = static_cast<std::int32_t>((u >> 16) << (h_shift - 16));
    const std::int32_t g = (pairs[i].g + u_g) >> g_shift;
    const std::int32_t h = (pairs[i].h + u_h) >> h_shift;
    const auto pair = static_cast<std::uint32_t>(g * 65536 + h);
    return static_cast<Element>(pair) << 32 | row;
  };
  if (args.rows.is_all()) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto id = static_cast<std::uint32_t>(i);
      elements[i] = element(i, id, id);
    }
  } else if (args.rows.table_rows == nullptr) {
    const std::uint32_t* positions = args.rows.positions;
    for (std::size_t i = begin; i < end; ++i) elements[i] = element(i, positions[i], positions[i]);
  } else {
    for (std::size_t i = begin; i < end; ++i)
      elements[i] = element(i, args.rows.position(i), args.rows.row(i));
  }
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
