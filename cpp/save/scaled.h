// Bit packing of doubles as integers times powers of two.
//
// Sums of hessians are integer multiples of a power of two, so most of their mantissa bits are
// zero. Each block of 64 numbers has its own power of two:
//
//   exponents   two bytes for each block: x = k 2^exponent; `as_they_are` for a block with a
//               number that is not finite, is -0, or is too far from the others
//   numbers     as save/bits.h packs them: k, or the 64 bits of x, where `as_they_are`;
//               0, -1, 1, -2, ... are 0, 1, 2, 3, ...
//
// The same numbers give the same bytes. Cost: 2 ns a number.
#pragma once

#include <bit>  // bit_cast
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "save/bits.h"

namespace arboost {

// Reader of the numbers, one after the other; the bytes must outlive it.
class ScaledReader {
 public:
  // Throws std::invalid_argument unless the bytes hold exactly `count` numbers.
  ScaledReader(std::span<const std::uint8_t> packed, std::size_t count);

  // To be called at most `count` times.
  double next() {
    if (at_++ % BitsReader::block_size == 0) start_block();
    return unscaled(integers_.next());
  }

 private:
  void start_block();
  double unscaled(std::uint64_t number) const {
    if (as_they_are_) return std::bit_cast<double>(number);
    const double x = static_cast<double>((number >> 1) + (number & 1)) * unit_ * rest_;
    return number & 1 ? -x : x;
  }

  std::span<const std::uint8_t> exponents_;
  BitsReader integers_;
  std::size_t at_ = 0;
  bool as_they_are_ = false;
  double unit_ = 1, rest_ = 1;
};

std::vector<std::uint8_t> pack_scaled(std::span<const double> numbers);

// Throws std::invalid_argument unless the bytes hold exactly `count` numbers.
std::vector<double> unpack_scaled(std::span<const std::uint8_t> packed, std::size_t count);

}  // namespace arboost
