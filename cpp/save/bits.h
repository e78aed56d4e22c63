// Bit packing: integers <-> bytes.
//
//   widths    one byte for each block of 64 numbers: the bits of its largest
//   numbers   block after block, each from a byte on, `width` bits a number, lowest bits first
//
// The same numbers give the same bytes, and n bytes hold at most 64 n numbers, which bounds the
// memory of a reader. Cost: 1 to 2 ns a number; single-threaded.
#pragma once

#include <array>
#include <bit>  // bit_cast
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// Reader of the numbers, one after the other; the bytes must outlive it.
class BitsReader {
 public:
  static constexpr std::size_t block_size = 64;

  // Throws std::invalid_argument unless the bytes hold exactly `count` numbers.
  BitsReader(std::span<const std::uint8_t> packed, std::size_t count);

  // To be called at most `count` times.
  std::uint64_t next() {
    if (at_ == block_size) read_block();
    return block_[at_++];
  }

 private:
  void read_block();

  std::span<const std::uint8_t> packed_;
  std::size_t count_, next_block_ = 0, from_;
  std::size_t at_ = block_size;
  std::array<std::uint64_t, block_size> block_{};
};

inline std::size_t blocks_of(std::size_t count) {
  return count / BitsReader::block_size + (count % BitsReader::block_size != 0);
}

std::vector<std::uint8_t> pack_bits(std::span<const std::uint64_t> numbers);

// Throws std::invalid_argument unless the bytes hold exactly `count` numbers.
std::vector<std::uint64_t> unpack_bits(std::span<const std::uint8_t> packed, std::size_t count);

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
