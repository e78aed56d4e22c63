// Bit packing: integers <-> bytes.
//
//   widths    one byte for each block of 64 numbers: the bits of its largest
//   numbers   block after block, each from a byte on, `width` bits a number, lowest bits first
//
// The same numbers give the same bytes, and n bytes hold at most 64 n numbers, which bounds the
// memory of a reader. Cost: 1 to 2 ns a number; single-threaded.
#pragma once

#include <array>
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

}  // namespace arboost
