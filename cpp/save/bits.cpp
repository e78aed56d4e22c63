#include "save/bits.h"

#include <algorithm>
#include <bit>        // bit_width
#include <stdexcept>  // invalid_argument

namespace arboost {
namespace {

constexpr std::size_t block_size = 64;
constexpr unsigned word_bits = 64;

std::size_t blocks_of(std::size_t count) {
  return count / block_size + (count % block_size != 0);
}

std::size_t bytes_of(std::size_t count, unsigned width) {
  return (count * width + 7) / 8;
}

void pack_block(std::span<const std::uint64_t> numbers, unsigned width,
                std::vector<std::uint8_t>& out) {
  std::uint64_t word = 0;
  unsigned used = 0;
  const auto put = [&](unsigned bits) {
    for (unsigned at = 0; at < bits; at += 8) out.push_back(static_cast<std::uint8_t>(word >> at));
  };
  for (const std::uint64_t number : numbers) {
    word |= number << used;
    used += width;
    if (used < word_bits) continue;
    put(word_bits);
    used -= word_bits;
    word = used > 0 ? number >> (width - used) : 0;
  }
  put(used);
}

std::uint64_t load(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}

// The last numbers are read a word and a byte at a time, too: bytes after them must be readable.
void unpack_block(const std::uint8_t* bytes, unsigned width, std::span<std::uint64_t> numbers) {
  if (width == 0) return;  // they are zeros
  const std::uint64_t mask = ~std::uint64_t{0} >> (word_bits - width);
  std::size_t bit = 0;
  for (std::uint64_t& number : numbers) {
    const std::uint8_t* from = bytes + bit / 8;
    const unsigned shift = bit % 8;
    std::uint64_t word = load(from) >> shift;
    if (shift + width > word_bits)
      word |= static_cast<std::uint64_t>(from[8]) << (word_bits - shift);
    number = word & mask;
    bit += width;
  }
}

}  // namespace

std::vector<std::uint8_t> pack_bits(std::span<const std::uint64_t> numbers) {
  const std::size_t n_blocks = blocks_of(numbers.size());
  std::vector<std::uint8_t> packed(n_blocks);
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const std::size_t first = i * block_size;
    const auto block = numbers.subspan(first, std::min(block_size, numbers.size() - first));
    std::uint64_t all = 0;
    for (const std::uint64_t number : block) all |= number;
    const auto width = static_cast<unsigned>(std::bit_width(all));
    packed[i] = static_cast<std::uint8_t>(width);
    if (width > 0) pack_block(block, width, packed);
  }
  return packed;
}

std::vector<std::uint64_t> unpack_bits(std::span<const std::uint8_t> packed, std::size_t count) {
  const std::size_t n_blocks = blocks_of(count);
  if (n_blocks > packed.size()) throw std::invalid_argument("fewer bytes than blocks of numbers");
  std::size_t size = n_blocks;
  for (std::size_t i = 0; i < n_blocks; ++i) {
    if (packed[i] > word_bits) throw std::invalid_argument("numbers of more than 64 bits");
    size += bytes_of(std::min(block_size, count - i * block_size), packed[i]);
  }
  if (size != packed.size())
    throw std::invalid_argument("another number of bytes than its numbers take");
  std::vector<std::uint64_t> numbers(count);
  std::uint8_t last[block_size * 8 + 8] = {};  // a copy of blocks with too few bytes after them
  const std::uint8_t* from = packed.data() + n_blocks;
  const std::uint8_t* end = packed.data() + packed.size();
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const std::size_t first = i * block_size, n = std::min(block_size, count - first);
    const std::size_t bytes = bytes_of(n, packed[i]);
    if (n * packed[i] % 8 != 0 && from[bytes - 1] >> (n * packed[i] % 8) != 0)
      throw std::invalid_argument("bits after the last number");
    const bool near_end = static_cast<std::size_t>(end - from) < bytes + 8;
    if (near_end) std::copy_n(from, bytes, last);
    unpack_block(near_end ? last : from, packed[i], {numbers.data() + first, n});
    from += bytes;
  }
  return numbers;
}

}  // namespace arboost
