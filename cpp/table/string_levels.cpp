// Hash table of strings with linear probing, and the sort of levels by bytes.
#include "table/string_levels.h"

#include <algorithm>
#include <cstring>  // loads from any alignment
#include <limits>
#include <numeric>  // iota
#include <stdexcept>

namespace arboost {
namespace {

constexpr std::size_t first_slots = 64;
constexpr std::int32_t never_seen = -2;  // a string that no row has asked for yet

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15;
  return x ^ x >> 29;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = mixed(text.size() + 1);
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mixed(hash * 0xD6E8FEB86659FD93 + word);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    hash = mixed(hash * 0xD6E8FEB86659FD93 + word);
  }
  return mixed(hash);
}

std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32);
}

// The 8 bytes after the first `skip` as a big-endian integer, which compares as the strings do.
std::uint64_t leading(std::string_view text, std::size_t skip) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t at = skip + i;
    word = word << 8 | (at < text.size() ? static_cast<unsigned char>(text[at]) : 0);
  }
  return word;
}

std::size_t common_prefix(const StringSet& strings, const std::vector<std::int32_t>& which) {
  if (which.empty()) return 0;
  const std::string_view first = strings[static_cast<std::size_t>(which[0])];
  std::size_t length = first.size();
  for (const std::int32_t i : which) {
    const std::string_view text = strings[static_cast<std::size_t>(i)];
    length = std::min(length, text.size());
    length = static_cast<std::size_t>(
        std::mismatch(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(length),
                      text.begin())
            .first -
        first.begin());
  }
  return length;
}

// Sorts by bytes. Most comparisons are of one integer: the bytes after the common prefix.
void sort_by_bytes(const StringSet& strings, std::vector<std::int32_t>& which) {
  struct Key {
    std::uint64_t leading;
    std::int32_t number;
  };
  const std::size_t skip = common_prefix(strings, which);
  std::vector<Key> keys;
  keys.reserve(which.size());
  for (const std::int32_t i : which)
    keys.push_back({leading(strings[static_cast<std::size_t>(i)], skip), i});
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.leading != b.leading) return a.leading < b.leading;
    // char_traits compares as unsigned bytes
    return strings[static_cast<std::size_t>(a.number)] <
           strings[static_cast<std::size_t>(b.number)];
  });
  std::transform(keys.begin(), keys.end(), which.begin(), [](const Key& k) { return k.number; });
}

// Strings by their numbers, one after the other.
Strings joined(const StringSet& strings, const std::vector<std::int32_t>& which) {
  std::size_t n_bytes = 0;
  for (const std::int32_t i : which) n_bytes += strings[static_cast<std::size_t>(i)].size();
  Strings all;
  all.bytes.reserve(n_bytes);
  all.offsets.reserve(which.size() + 1);
  all.offsets.push_back(0);
  for (const std::int32_t i : which) {
    const std::string_view text = strings[static_cast<std::size_t>(i)];
    all.bytes.insert(all.bytes.end(), text.begin(), text.end());
    all.offsets.push_back(static_cast<std::int64_t>(all.bytes.size()));
  }
  return all;
}

// The number of each row's string, which number_of(string) returns: asked once for each string.
template <class NumberOf>
std::vector<std::int32_t> numbers_of(const Text& text, NumberOf number_of) {
  std::vector<std::int32_t> number(text.strings.size(), never_seen);
  std::vector<std::int32_t> codes(text.codes.size(), -1);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (text.codes[i] < 0) continue;
    const auto level = static_cast<std::size_t>(text.codes[i]);
    if (number[level] == never_seen) number[level] = number_of(text.strings[level]);
    codes[i] = number[level];
  }
  return codes;
}

}  // namespace

std::string_view StringSet::operator[](std::size_t number) const {
  const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
  return {bytes_.data() + begin, ends_[number] - begin};
}

// The slot of the string, or the free one where it belongs.
std::size_t StringSet::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t index = hash & mask;
  for (;; index = (index + 1) & mask) {
    const Slot slot = slots_[index];
    if (slot.number < 0) return index;
    if (slot.tag == tag_of(hash) && (*this)[static_cast<std::size_t>(slot.number)] == text)
      return index;
  }
}

std::int32_t StringSet::find(std::string_view text) const {
  if (slots_.empty()) return -1;
  return slots_[slot_of(text, hash_of(text))].number;
}

std::int32_t StringSet::add(std::string_view text) {
  if (2 * size() >= slots_.size()) grow();
  const std::uint64_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number >= 0) return slot.number;
  if (size() >= std::numeric_limits<std::int32_t>::max())
    throw std::length_error("A column has 2**31 levels or more.");
  const auto number = static_cast<std::int32_t>(size());
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  ends_.push_back(bytes_.size());
  slot = {tag_of(hash), number};
  return number;
}

void StringSet::grow() {
  slots_.assign(std::max(first_slots, 2 * slots_.size()), {0, -1});
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < size(); ++i) {
    const std::uint64_t hash = hash_of((*this)[i]);
    std::size_t index = hash & mask;
    while (slots_[index].number >= 0) index = (index + 1) & mask;
    slots_[index] = {tag_of(hash), static_cast<std::int32_t>(i)};
  }
}

Strings sorted_levels(const Text& text, std::vector<std::int32_t>& codes) {
  std::vector<std::int32_t> sorted_code(text.strings.size(), -1);
  std::vector<std::int32_t> present;
  for (const std::int32_t code : text.codes) {
    if (code < 0 || sorted_code[static_cast<std::size_t>(code)] >= 0) continue;
    sorted_code[static_cast<std::size_t>(code)] = 0;
    present.push_back(code);
  }
  sort_by_bytes(text.strings, present);
  for (std::size_t i = 0; i < present.size(); ++i)
    sorted_code[static_cast<std::size_t>(present[i])] = static_cast<std::int32_t>(i);
  codes.resize(text.codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = text.codes[i] < 0 ? -1 : sorted_code[static_cast<std::size_t>(text.codes[i])];
  return joined(text.strings, present);
}

std::vector<std::int32_t> add_rows(StringSet& known, const Text& text) {
  return numbers_of(text, [&](std::string_view string) { return known.add(string); });
}

Strings in_order(const StringSet& strings) {
  std::vector<std::int32_t> all(strings.size());
  std::iota(all.begin(), all.end(), 0);
  return joined(strings, all);
}

std::vector<std::int32_t> look_up(const StringSet& known, const Text& text) {
  return numbers_of(text, [&](std::string_view string) { return known.find(string); });
}

std::vector<std::string_view> checked_strings(std::span<const std::uint8_t> bytes,
                                              std::span<const std::int64_t> offsets, bool ascend) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != size)
    throw std::invalid_argument("levels that do not fill their bytes");
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  std::vector<std::string_view> strings;
  strings.reserve(offsets.size() - 1);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || offsets[i + 1] > size)
      throw std::invalid_argument("a level outside its bytes");
    strings.emplace_back(text + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
    if (ascend && i > 0 && strings[i - 1] >= strings[i])
      throw std::invalid_argument("levels that are not in ascending order");
  }
  return strings;
}

}  // namespace arboost
