// Columns of strings -> level codes. Each distinct string is stored once, in one buffer. Cost: a
// hash and a table look-up a row, about 50 ms for a million rows; single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace arboost {

// Distinct strings, numbered in the order of their first occurrence.
class StringSet {
 public:
  // The string's number, a new one for a new string. Throws std::length_error beyond 2^31 strings.
  std::int32_t add(std::string_view text);
  // The string's number, -1 for one that was never added.
  std::int32_t find(std::string_view text) const;
  std::string_view operator[](std::size_t number) const;
  std::size_t size() const { return ends_.size(); }
  // Memory of the strings and of their table.
  std::size_t n_bytes() const {
    return bytes_.capacity() + ends_.capacity() * sizeof(std::size_t) +
           slots_.capacity() * sizeof(Slot);
  }

 private:
  struct Slot {
    std::uint32_t tag;    // hash bits that do not follow from the slot's index
    std::int32_t number;  // -1: free
  };
  std::size_t slot_of(std::string_view text, std::uint64_t hash) const;
  void grow();

  std::vector<char> bytes_;
  std::vector<std::size_t> ends_;
  std::vector<Slot> slots_;  // a power of two of them, half of them free
};

// A column of strings: for each row the number of its string, -1 where it is missing.
struct Text {
  StringSet strings;
  std::vector<std::int32_t> codes;
};

// Strings one after the other; string i is bytes [offsets[i], offsets[i + 1]).
struct Strings {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> offsets;
};

// The strings that occur in the rows, in the order of their bytes; `codes` gets each row's index in
// that order, -1 where it is missing.
Strings sorted_levels(const Text& text, std::vector<std::int32_t>& codes);

// Each row's number in `known`, to which new strings are added; -1 where it is missing.
std::vector<std::int32_t> add_rows(StringSet& known, const Text& text);

// All strings in the order of their numbers.
Strings in_order(const StringSet& strings);

// Each row's number in `known`, -1 where it is missing or unknown.
std::vector<std::int32_t> look_up(const StringSet& known, const Text& text);

// Views of strings from an untrusted source. Throws std::invalid_argument unless they fill the
// bytes one after the other and, where they `ascend`, each is above the one before.
std::vector<std::string_view> checked_strings(std::span<const std::uint8_t> bytes,
                                              std::span<const std::int64_t> offsets,
                                              bool ascend = true);

}  // namespace arboost
