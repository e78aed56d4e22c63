// 64-bit integers <-> as few bytes as they need.
//
// A number is two halves: the low 32 bits, unsigned, and the high ones, signed. Sums of gradients
// and hessians are such pairs, and counts have an empty high half. All numbers of an array get as
// many bytes for each half as its longest one needs. Where that takes fewer bytes, zeros are left
// out, and a bit for each number marks these.
//
//   layout   [bytes of a low half, of a high half, whether zeros are left out]
//            numbers; or for every 64 of them a word of bits, then those that are not zero
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// Appends the numbers to `out`.
void pack_numbers(std::span<const std::int64_t> numbers, std::vector<std::uint8_t>& out);

// Reads packed arrays, one after the other. Throws std::invalid_argument where bytes are missing.
class PackedReader {
 public:
  explicit PackedReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  // The next array, of as many numbers.
  void add_to(std::span<std::int64_t> numbers);
  void copy_to(std::span<std::int64_t> numbers);
  bool is_done() const { return rest_.empty(); }

 private:
  // Calls use(i, number) for its numbers, those that are zero left out or not.
  template <class Use>
  void read(std::size_t n, Use use);

  std::span<const std::uint8_t> rest_;
};

}  // namespace arboost
