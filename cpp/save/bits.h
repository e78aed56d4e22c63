// Integers <-> as few bits as they need.
//
//   widths    one byte for each block of 64 numbers: the bits of its largest
//   numbers   block after block, each from a byte on, `width` bits a number, lowest bits first
//
// The same numbers give the same bytes, and so many bytes never hold more than 64 times as many
// numbers: whoever reads them need not fear for its memory. Cost: 1 to 2 ns a number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// The numbers one after the other; the bytes must live as long.
class BitsReader {
 public:
  static constexpr std::size_t block_size = 64;

  // Throws std::invalid_argument unless the bytes hold exactly `count` numbers.
  BitsReader(std::span<const std::uint8_t> packed, std::size_t count);

  // Nobody may ask for more than `count` of them.
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

std::vector<std::uint8_t> pack_bits(std::span<const std::uint64_t> numbers);

// Throws std::invalid_argument unless the bytes hold exactly `count` numbers.
std::vector<std::uint64_t> unpack_bits(std::span<const std::uint8_t> packed, std::size_t count);

}  // namespace arboost
