// Bit packing of integers and doubles by blocks of 64 numbers. 1 to 2 ns a number; single-threaded.
#include "save/bits.h"

#include <algorithm>
#include <cmath>  // ldexp
#include <limits>
#include <stdexcept>  // invalid_argument

namespace arboost {
namespace {

constexpr std::size_t block_size = BitsReader::block_size;
constexpr unsigned word_bits = 64;

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

// All numbers are read as a word and a byte: some bytes after the last number must be readable.
void unpack_block(const std::uint8_t* bytes, unsigned width, std::span<std::uint64_t> numbers) {
  if (width == 0) {
    std::fill(numbers.begin(), numbers.end(), 0);
    return;
  }
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

constexpr std::int16_t as_they_are = std::numeric_limits<std::int16_t>::max();
constexpr int mantissa_bits = 52, bias = 1023, top_exponent = 0x7FF;
constexpr int lowest_exponent = 1 - bias - mantissa_bits;  // of the smallest double
constexpr int largest_exponent = bias - mantissa_bits;
constexpr int most_bits = 63;  // of k: one is for its sign

// x = mantissa 2^exponent with an odd mantissa, or 0.
struct Parts {
  std::uint64_t mantissa;
  int exponent;
};

bool is_plain(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return (bits >> mantissa_bits & top_exponent) != top_exponent && bits != std::uint64_t{1} << 63;
}

Parts parts_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> mantissa_bits & top_exponent);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  if (exponent > 0) mantissa |= std::uint64_t{1} << mantissa_bits;
  if (mantissa == 0) return {0, 0};
  const int zeros = std::countr_zero(mantissa);
  return {mantissa >> zeros, std::max(exponent, 1) - bias - mantissa_bits + zeros};
}

std::uint64_t without_sign(double x, std::uint64_t size) {
  return x < 0 ? 2 * size - 1 : 2 * size;
}

// Writes the integers of a block and returns its exponent.
std::int16_t scale_block(std::span<const double> x, std::uint64_t* out) {
  int lowest = largest_exponent, highest = lowest_exponent;
  bool plain = true;
  for (const double number : x) {
    plain = plain && is_plain(number);
    const Parts parts = parts_of(number);
    if (parts.mantissa == 0) continue;
    lowest = std::min(lowest, parts.exponent);
    highest = std::max(highest, parts.exponent + static_cast<int>(std::bit_width(parts.mantissa)));
  }
  if (!plain || highest - lowest > most_bits) {
    for (const double number : x) *out++ = std::bit_cast<std::uint64_t>(number);
    return as_they_are;
  }
  for (const double number : x) {
    const Parts parts = parts_of(number);
    const std::uint64_t size =
        parts.mantissa == 0 ? 0 : parts.mantissa << (parts.exponent - lowest);
    *out++ = without_sign(number, size);
  }
  return static_cast<std::int16_t>(lowest);
}

std::span<const std::uint8_t> exponents_of(std::span<const std::uint8_t> packed,
                                           std::size_t count) {
  if (blocks_of(count) > packed.size() / 2)
    throw std::invalid_argument("scaled numbers have fewer bytes than blocks");
  return packed.first(2 * blocks_of(count));
}

int exponent_at(std::span<const std::uint8_t> exponents, std::size_t block) {
  const int low = exponents[2 * block], high = exponents[2 * block + 1];
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(low | high << 8));
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

BitsReader::BitsReader(std::span<const std::uint8_t> packed, std::size_t count)
    : packed_(packed), count_(count), from_(blocks_of(count)) {
  if (from_ > packed.size())
    throw std::invalid_argument("packed numbers have fewer bytes than blocks");
  std::size_t size = from_;
  for (std::size_t i = 0; i < from_; ++i) {
    const std::size_t n = std::min(block_size, count - i * block_size);
    if (packed[i] > word_bits)
      throw std::invalid_argument("packed numbers have a width above 64 bits");
    size += bytes_of(n, packed[i]);
    const unsigned last_bits = n * packed[i] % 8;
    if (last_bits != 0 && size <= packed.size() && packed[size - 1] >> last_bits != 0)
      throw std::invalid_argument("packed numbers have nonzero bits after the last number");
  }
  if (size != packed.size())
    throw std::invalid_argument("another number of bytes than its numbers take");
}

void BitsReader::read_block() {
  const std::size_t n = std::min(block_size, count_ - next_block_ * block_size);
  const unsigned width = packed_[next_block_];
  const std::size_t bytes = bytes_of(n, width);
  const std::span<std::uint64_t> out(block_.data(), n);
  if (packed_.size() - from_ >= bytes + 8) {
    unpack_block(packed_.data() + from_, width, out);
  } else {
    std::uint8_t last[block_size * 8 + 8] = {};  // a copy, because too few bytes come after it
    std::copy_n(packed_.data() + from_, bytes, last);
    unpack_block(last, width, out);
  }
  from_ += bytes;
  ++next_block_;
  at_ = 0;
}

std::vector<std::uint64_t> unpack_bits(std::span<const std::uint8_t> packed, std::size_t count) {
  BitsReader reader(packed, count);
  std::vector<std::uint64_t> numbers(count);
  for (std::uint64_t& number : numbers) number = reader.next();
  return numbers;
}

std::vector<std::uint8_t> pack_scaled(std::span<const double> numbers) {
  const std::size_t n_blocks = blocks_of(numbers.size());
  std::vector<std::uint64_t> integers(numbers.size());
  std::vector<std::uint8_t> packed(2 * n_blocks);
  for (std::size_t i = 0; i < n_blocks; ++i) {
    const std::size_t first = i * block_size;
    const auto block = numbers.subspan(first, std::min(block_size, numbers.size() - first));
    const auto exponent = static_cast<std::uint16_t>(scale_block(block, integers.data() + first));
    packed[2 * i] = static_cast<std::uint8_t>(exponent & 0xFF);
    packed[2 * i + 1] = static_cast<std::uint8_t>(exponent >> 8);
  }
  const std::vector<std::uint8_t> rest = pack_bits(integers);
  packed.insert(packed.end(), rest.begin(), rest.end());
  return packed;
}

ScaledReader::ScaledReader(std::span<const std::uint8_t> packed, std::size_t count)
    : exponents_(exponents_of(packed, count)), integers_(packed.subspan(exponents_.size()), count) {
  for (std::size_t i = 0; i < blocks_of(count); ++i) {
    const int exponent = exponent_at(exponents_, i);
    if (exponent != as_they_are && (exponent < lowest_exponent || exponent > largest_exponent))
      throw std::invalid_argument("numbers in a unit that doubles do not have");
  }
}

void ScaledReader::start_block() {
  const int exponent = exponent_at(exponents_, (at_ - 1) / block_size);
  as_they_are_ = exponent == as_they_are;
  if (as_they_are_) return;
  // In two steps, because the unit of the smallest numbers is a subnormal double.
  const int first = std::max(exponent, 1 - bias);
  unit_ = std::ldexp(1.0, first);
  rest_ = std::ldexp(1.0, exponent - first);
}

std::vector<double> unpack_scaled(std::span<const std::uint8_t> packed, std::size_t count) {
  ScaledReader reader(packed, count);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = reader.next();
  return numbers;
}

}  // namespace arboost
