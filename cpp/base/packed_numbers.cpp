// One pass for the sizes, one that writes; about 1 ns a number.
#include "base/packed_numbers.h"

#include <algorithm>
#include <bit>  // bit_width
#include <cstring>
#include <stdexcept>

namespace arboost {
namespace {

constexpr std::size_t header = 3, word = 64;

struct Sizes {
  unsigned low, high;  // bytes
  unsigned both() const { return low + high; }
};

unsigned bytes_for(int bits) {
  return static_cast<unsigned>(bits + 7) / 8;
}

std::uint64_t low_mask(unsigned bytes) {
  return bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}

}  // namespace

void pack_numbers(std::span<const std::int64_t> numbers, std::vector<std::uint8_t>& out) {
  std::uint64_t low_bits = 0, high_bits = 0;
  std::size_t n_zeros = 0;
  bool any_negative = false;
  for (const std::int64_t x : numbers) {
    const std::int64_t high = x >> 32;
    low_bits |= static_cast<std::uint32_t>(x);
    high_bits |= static_cast<std::uint64_t>(high ^ (high >> 63));  // of -1 as few as of 0
    n_zeros += x == 0;
    any_negative |= x < 0;
  }
  // A signed half has a bit for its sign.
  const Sizes sizes{bytes_for(std::bit_width(low_bits)),
                    high_bits == 0 && !any_negative ? 0 : bytes_for(std::bit_width(high_bits) + 1)};
  const std::size_t n = numbers.size(), n_words = (n + word - 1) / word;
  const bool skips = n_zeros * sizes.both() > n_words * sizeof(std::uint64_t);
  const std::size_t n_written = skips ? n - n_zeros : n;
  const std::size_t start = out.size();
  const std::size_t size = header + n_written * sizes.both() + (skips ? n_words * 8 : 0);
  out.resize(start + size + 8);  // each write is of 8 bytes
  std::uint8_t* at = out.data() + start;
  *at++ = static_cast<std::uint8_t>(sizes.low);
  *at++ = static_cast<std::uint8_t>(sizes.high);
  *at++ = skips ? 1 : 0;
  const std::uint64_t low = low_mask(sizes.low);
  const unsigned shift = 8 * sizes.low, step = sizes.both();
  const auto write = [&](std::int64_t x) {
    const auto half = static_cast<std::uint64_t>(x >> 32);
    const std::uint64_t joined = (static_cast<std::uint64_t>(x) & low) | half << shift;
    std::memcpy(at, &joined, 8);
  };
  if (!skips) {
    for (const std::int64_t x : numbers) {
      write(x);
      at += step;
    }
  }
  for (std::size_t first = 0; skips && first < n; first += word) {
    std::uint64_t mask = 0;
    std::uint8_t* position = at;
    at += 8;
    for (std::size_t i = first; i < std::min(first + word, n); ++i) {
      const bool is_there = numbers[i] != 0;
      mask |= std::uint64_t{is_there} << (i - first);
      write(numbers[i]);
      at += is_there ? step : 0;
    }
    std::memcpy(position, &mask, 8);
  }
  out.resize(start + size);
}

template <class Use>
void PackedReader::read(std::size_t n, Use use) {
  const auto require = [](bool holds) {
    if (!holds) throw std::invalid_argument("packed numbers end too early");
  };
  require(rest_.size() >= header);
  const Sizes sizes{rest_[0], rest_[1]};
  require(sizes.low <= 4 && sizes.high <= 4);
  const bool skips = rest_[2] != 0;
  const unsigned step = sizes.both(), shift = 8 * sizes.low;
  const std::uint64_t low = low_mask(sizes.low);
  const unsigned unused = 32 - 8 * sizes.high;  // bits of the high half
  const std::uint8_t* at = rest_.data() + header;
  const std::uint8_t* end = rest_.data() + rest_.size();
  const auto number = [&](const std::uint8_t* from, std::size_t n_bytes) {
    std::uint64_t joined = 0;
    std::memcpy(&joined, from, n_bytes);
    const auto bits = static_cast<std::uint32_t>(joined >> shift);
    const std::int32_t high =
        sizes.high == 0 ? 0 : static_cast<std::int32_t>(bits << unused) >> unused;
    return (std::int64_t{high} << 32) | static_cast<std::int64_t>(joined & low);
  };
  const auto next = [&](std::size_t i) {
    // The last numbers end before the 8 bytes that one read would take.
    const auto left = static_cast<std::size_t>(end - at);
    use(i, left >= 8 ? number(at, 8) : number(at, step));
    at += step;
  };
  if (!skips) {
    require(static_cast<std::size_t>(end - at) >= n * step);
    for (std::size_t i = 0; i < n; ++i) next(i);
  }
  for (std::size_t first = 0; skips && first < n; first += word) {
    require(end - at >= 8);
    std::uint64_t mask;
    std::memcpy(&mask, at, 8);
    at += 8;
    require(static_cast<std::size_t>(end - at) >=
            static_cast<std::size_t>(std::popcount(mask)) * step);
    for (; mask != 0; mask &= mask - 1) {
      const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(mask));
      require(i < n);
      next(i);
    }
  }
  rest_ = rest_.subspan(static_cast<std::size_t>(at - rest_.data()));
}

void PackedReader::add_to(std::span<std::int64_t> numbers) {
  read(numbers.size(), [&](std::size_t i, std::int64_t x) { numbers[i] += x; });
}

void PackedReader::copy_to(std::span<std::int64_t> numbers) {
  std::fill(numbers.begin(), numbers.end(), 0);
  read(numbers.size(), [&](std::size_t i, std::int64_t x) { numbers[i] = x; });
}

}  // namespace arboost
