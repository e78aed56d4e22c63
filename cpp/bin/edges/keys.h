// A radix sort (linear, single-threaded) and a hash set of the keys of numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>  // exchange
#include <vector>

#include "bin/edges/number_keys.h"

namespace arboost {

// Item to sort: a key, or a key with the position of its row.
template <class Key_>
struct Plain {
  using Key = Key_;
  Key key;
};
template <class Key_>
struct Placed {
  using Key = Key_;
  Key key;
  std::uint32_t position;
};

// Sorts by key; items of the same key keep their order. `spare` has room for as many items.
//
// Three radix passes, last digit first, over the leading bits of the keys' range. They tell nearly
// all keys apart; runs that agree in those bits are then sorted by comparison.
template <class Item>
void sort_by_key(std::span<Item> items, std::span<Item> spare) {
  using Key = typename Item::Key;
  if (items.size() < 2) return;
  Key least = items[0].key, most = items[0].key;
  for (const Item& item : items) {
    least = std::min(least, item.key);
    most = std::max(most, item.key);
  }
  constexpr int n_digits = 3;
  const int digit_bits = items.size() < 4096 ? 8 : 11;
  const std::size_t n_values = std::size_t{1} << digit_bits;
  const int range_bits = static_cast<int>(std::bit_width(static_cast<Key>(most - least)));
  const int shift = std::max(0, range_bits - n_digits * digit_bits);
  const auto prefix = [&](const Item& item) {
    return static_cast<std::size_t>(static_cast<Key>(item.key - least) >> shift);
  };

  std::vector<std::uint32_t> counts(n_digits * n_values);
  for (const Item& item : items) {
    std::size_t rest = prefix(item);
    for (std::size_t d = 0; d < n_digits; ++d, rest >>= digit_bits)
      ++counts[d * n_values + (rest & (n_values - 1))];
  }
  Item *from = items.data(), *to = spare.data();
  for (int d = 0; d * digit_bits < range_bits - shift; ++d) {
    std::uint32_t* next = counts.data() + static_cast<std::size_t>(d) * n_values;
    std::uint32_t sum = 0;
    for (std::size_t v = 0; v < n_values; ++v) sum += std::exchange(next[v], sum);
    for (std::size_t i = 0; i < items.size(); ++i)
      to[next[(prefix(from[i]) >> (d * digit_bits)) & (n_values - 1)]++] = from[i];
    std::swap(from, to);
  }
  if (from != items.data()) std::copy(from, from + items.size(), items.data());
  if (shift == 0) return;

  const auto less = [](const Item& a, const Item& b) { return a.key < b.key; };
  for (std::size_t begin = 0, end; begin < items.size(); begin = end) {
    for (end = begin + 1; end < items.size() && prefix(items[end]) == prefix(items[begin]);) ++end;
    const auto run = items.subspan(begin, end - begin);
    if (!std::is_sorted(run.begin(), run.end(), less))
      std::stable_sort(run.begin(), run.end(), less);
  }
}

// Hash set of keys.
class KeySet {
 public:
  KeySet() : slots_(256, empty) {}
  void insert(std::uint64_t key) {
    if (key == last_) return;
    last_ = key;
    if (4 * (size_ + 1) > slots_.size()) grow();
    place(key);
  }
  std::size_t size() const { return size_; }
  std::vector<std::uint64_t> keys() const {
    std::vector<std::uint64_t> keys;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(keys),
                 [](std::uint64_t key) { return key != empty; });
    return keys;
  }

 private:
  static constexpr std::uint64_t empty = no_key;

  void place(std::uint64_t key) {
    // Keys of round numbers differ in their leading bits only: fold those in, take the top bits.
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (((key ^ key >> 29) * 0x9e3779b97f4a7c15u) >> 40) & mask;
    while (slots_[slot] != key && slots_[slot] != empty) slot = (slot + 1) & mask;
    if (slots_[slot] == empty) ++size_;
    slots_[slot] = key;
  }
  void grow() {
    const auto old = keys();
    slots_.assign(2 * slots_.size(), empty);
    size_ = 0;
    for (const std::uint64_t key : old) place(key);
  }

  std::vector<std::uint64_t> slots_;
  std::uint64_t last_ = empty;
  std::size_t size_ = 0;
};

}  // namespace arboost
