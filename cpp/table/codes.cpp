// Mapping of features to stored columns, and of stored columns to histogram slots. Linear in
// features and slots.
#include "table/codes.h"

#include <limits>
#include <stdexcept>
#include <string>

namespace arboost {

void DistantCodes::fetch(const Codes& codes) {
  if (is_here_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  if (is_here_.load(std::memory_order_relaxed)) return;
  copy(codes);
  is_here_.store(true, std::memory_order_release);
}

void Codes::give_own_places() {
  n_stores = n_features;
  where.assign(n_features, {});
  for (std::size_t f = 0; f < n_features; ++f) where[f].store = static_cast<std::uint32_t>(f);
}

std::uint32_t Codes::decode(std::size_t feature, std::uint32_t stored) const {
  const FeatureStorage& storage = where[feature];
  if (storage.kind == Storage::single) return stored;
  const Digit& of = digits[storage.digit];
  const std::uint32_t digit = stored / of.stride % of.radix;
  if (!storage.exclusive) return digit;
  const bool is_other = digit >= storage.first && digit - storage.first < storage.n_others;
  return is_other ? storage.code_of(digit - storage.first) : storage.usual;
}

void Codes::number_slots() {
  std::vector<std::uint64_t> sizes(n_stores, 1);
  for (const Digit& digit : digits) sizes[digit.store] *= digit.radix;
  for (std::size_t f = 0; f < n_features; ++f)
    if (where[f].kind == Storage::single) sizes[where[f].store] = n_codes(f);
  std::uint64_t slots = 0;
  first_slot.clear();
  for (std::size_t s = 0; s <= n_stores; ++s) {
    first_slot.push_back(static_cast<std::uint32_t>(slots));
    if (s < n_stores) slots += sizes[s];
  }
  slots += sparse.n_slots();
  if (slots > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument(
        "The table has " + std::to_string(slots) +
        " bins in all, but at most 2^31 - 1 are allowed. Lower max_bins, or pass fewer columns.");
}

void Codes::add_missing(const std::vector<std::uint8_t>& others) {
  if (others.size() != n_features)
    throw std::invalid_argument("A table needs an entry for every feature.");
  for (std::size_t f = 0; f < n_features; ++f) has_missing[f] |= others[f];
  number_slots();
}

Codes Codes::layout() const {
  Codes empty_codes;
  empty_codes.n_features = n_features;
  empty_codes.n_stores = n_stores;
  empty_codes.width = width;
  empty_codes.row_stride = row_stride;
  empty_codes.n_bins = n_bins;
  empty_codes.has_missing = has_missing;
  empty_codes.edges = edges;
  empty_codes.is_category = is_category;
  empty_codes.where = where;
  empty_codes.digits = digits;
  return empty_codes;
}

Codes Codes::empty_copy(std::size_t rows) const {
  Codes empty_codes = layout();
  empty_codes.n_rows = rows;
  empty_codes.by_row = Buffer<std::uint8_t>(empty_codes.bytes_by_row());
  empty_codes.by_column = Buffer<std::uint8_t>(empty_codes.bytes_by_column());
  empty_codes.number_slots();
  return empty_codes;
}

}  // namespace arboost
