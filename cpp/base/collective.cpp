// Sums by messages. Bytes that a worker sends for S bytes of numbers and W workers: (W - 1) S for
// few numbers; (W - 1) / W S for their parts, and as much again where all workers need them.
#include "base/collective.h"

#include <algorithm>
#include <bit>  // bit_width
#include <cstring>
#include <stdexcept>

namespace arboost {
namespace {

// 64-bit integers <-> as few bytes as they need.
//
// A number is two halves: the low 32 bits, unsigned, and the high ones, signed. Sums of gradients
// and hessians are such pairs, and counts have an empty high half. All numbers of an array get as
// many bytes for each half as its longest one needs. Where that takes fewer bytes, zeros are left
// out, and a bit for each number marks these.
//
//   layout   [bytes of a low half, of a high half, whether zeros are left out]
//            numbers; or for every 64 of them a word of bits, then those that are not zero
//
// Packing takes one pass for the sizes and one that writes, about 1 ns a number.

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

// Reads packed arrays, one after the other. Throws std::invalid_argument where bytes are missing.
class PackedReader {
 public:
  explicit PackedReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  // The next array, of as many numbers.
  void add_to(std::span<std::int64_t> numbers) {
    read(numbers.size(), [&](std::size_t i, std::int64_t x) { numbers[i] += x; });
  }

  void copy_to(std::span<std::int64_t> numbers) {
    std::fill(numbers.begin(), numbers.end(), 0);
    read(numbers.size(), [&](std::size_t i, std::int64_t x) { numbers[i] = x; });
  }

  bool is_done() const { return rest_.empty(); }

 private:
  // Calls use(i, number) for its numbers, those that are zero left out or not.
  template <class Use>
  void read(std::size_t n, Use use) {
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

  std::span<const std::uint8_t> rest_;
};

// Appends the numbers to `out`.
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

// Numbers that are sent to all workers at once: less than a message costs anyway.
constexpr std::size_t few_numbers = 2048;

void check_end(const PackedReader& reader) {
  if (!reader.is_done())
    throw std::logic_error("workers disagree about the numbers that they exchange");
}

}  // namespace

const std::vector<Collective::Bytes>& Collective::exchange(View message) {
  return exchange(std::vector<View>(size(), message));
}

void Collective::sum(Arrays arrays) {
  if (size() == 1) return;
  std::size_t n = 0;
  for (const Numbers& array : arrays) n += array.size();
  if (n * (size() - 1) <= few_numbers) return sum_everywhere(arrays);
  const auto share = [this](const Numbers& array, std::size_t r) {
    const std::size_t begin = array.size() * r / size();
    return array.subspan(begin, array.size() * (r + 1) / size() - begin);
  };
  add_parts(arrays, share, {});
  share_parts(arrays, share);
}

void Collective::sum_everywhere(Arrays arrays) {
  messages_.resize(size());
  Bytes& message = messages_.front();
  message.clear();
  for (const Numbers& array : arrays) pack_numbers(array, message);
  const std::vector<Bytes>& received = exchange(View(message));
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    for (const Numbers& array : arrays) reader.add_to(array);
    check_end(reader);
  }
}

void Collective::sum_parts(Arrays arrays, std::span<const std::size_t> bounds, Numbers numbers) {
  if (size() == 1) return;
  const auto part = [bounds](const Numbers& array, std::size_t r) {
    return array.subspan(bounds[r], bounds[r + 1] - bounds[r]);
  };
  add_parts(arrays, part, numbers);
}

// Adds up part(array, r) of each array in worker r, and the numbers in all.
void Collective::add_parts(Arrays arrays, PartOf part, Numbers numbers) {
  messages_.resize(size());
  std::vector<View> views(size());
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    messages_[r].clear();
    pack_numbers(numbers, messages_[r]);
    for (const Numbers& array : arrays) pack_numbers(part(array, r), messages_[r]);
    views[r] = messages_[r];
  }
  const std::vector<Bytes>& received = exchange(views);
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    reader.add_to(numbers);
    for (const Numbers& array : arrays) reader.add_to(part(array, rank()));
    check_end(reader);
  }
}

// Replaces part r of each array by that of worker r.
void Collective::share_parts(Arrays arrays, PartOf part) {
  Bytes message;
  for (const Numbers& array : arrays) pack_numbers(part(array, rank()), message);
  const std::vector<Bytes>& received = exchange(View(message));
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    for (const Numbers& array : arrays) reader.copy_to(part(array, r));
    check_end(reader);
  }
}

void Collective::max(Numbers numbers) {
  for (const std::vector<std::int64_t>& other : gather(numbers)) {
    if (other.size() != numbers.size())
      throw std::logic_error("workers disagree about the numbers that they exchange");
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::max(numbers[i], other[i]);
  }
}

std::vector<std::vector<std::int64_t>> Collective::gather(std::span<const std::int64_t> numbers) {
  std::vector<std::vector<std::int64_t>> all(size());
  all[rank()].assign(numbers.begin(), numbers.end());
  if (size() == 1) return all;
  const std::int64_t n[] = {static_cast<std::int64_t>(numbers.size())};
  Bytes message;
  pack_numbers(n, message);
  pack_numbers(numbers, message);
  const std::vector<Bytes>& received = exchange(View(message));
  for (std::size_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    PackedReader reader(received[r]);
    std::int64_t length[1];
    reader.copy_to(length);
    all[r].resize(static_cast<std::size_t>(length[0]));
    reader.copy_to(all[r]);
    check_end(reader);
  }
  return all;
}

}  // namespace arboost
