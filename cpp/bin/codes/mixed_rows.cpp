#include "bin/codes/mixed_rows.h"

#include <bit>  // bit_cast, bit_ceil
#include <cstring>

#include "base/random.h"

namespace arboost {
namespace {

std::uint64_t hash_bytes(const std::uint8_t* bytes, std::size_t n) {
  std::uint64_t hash = 0;
  for (std::size_t at = 0; at < n; at += 8) {
    std::uint64_t word = 0;  // the padding of rows is arbitrary
    std::memcpy(&word, bytes + at, n - at < 8 ? n - at : 8);
    hash = mix_bits(hash + 0x9e3779b97f4a7c15u) ^ mix_bits(word);
  }
  return hash;
}

std::uint64_t hash_targets(const double* values, std::size_t n) {
  std::uint64_t hash = 0;
  for (std::size_t k = 0; k < n; ++k)  // 0 is also -0
    hash = mix_bits(hash + 0x9e3779b97f4a7c15u) ^ std::bit_cast<std::uint64_t>(values[k] + 0.0);
  return hash;
}

// Rows of one key: the target of the first, and whether another one has another target.
struct KeyRows {
  std::uint64_t key = 0, target = 0;
  bool seen = false, mixed = false;
};

}  // namespace

std::vector<std::uint64_t> row_keys(const Codes& codes) {
  codes.fetch();
  std::vector<std::uint64_t> keys(codes.n_rows);
  const std::size_t n_bytes = codes.n_stores * static_cast<std::size_t>(codes.width);
  codes.each_window(0, codes.n_rows, [&](const RowWindow& window) {
    const RowCodes rows = codes.row_codes(window);
    for (std::size_t i = window.begin; i < window.end; ++i)
      keys[i] = hash_bytes(rows.row<std::uint8_t>(static_cast<RowId>(i)), n_bytes);
  });
  const SparseCodes& sparse = codes.sparse;
  const auto width = static_cast<std::size_t>(codes.width);
  for (std::size_t c = 0; c < sparse.size(); ++c)
    for (std::size_t k = sparse.start[c]; k < sparse.start[c + 1]; ++k) {
      const std::uint64_t code = hash_bytes(sparse.codes.data() + k * width, width);
      keys[sparse.rows[k]] += mix_bits(code + c);
    }
  return keys;
}

std::vector<RowId> mixed_rows(std::span<const std::uint64_t> keys, std::span<const double> targets,
                              std::size_t n_targets) {
  const std::size_t mask = std::bit_ceil(2 * keys.size() + 1) - 1;
  std::vector<KeyRows> table(mask + 1);
  std::vector<std::size_t> entry_of_row(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::size_t at = mix_bits(keys[i]) & mask;
    while (table[at].seen && table[at].key != keys[i]) at = (at + 1) & mask;
    KeyRows& rows = table[entry_of_row[i] = at];
    const std::uint64_t target = hash_targets(targets.data() + i * n_targets, n_targets);
    if (!rows.seen) rows = {keys[i], target, true, false};
    rows.mixed |= rows.target != target;
  }
  std::vector<RowId> mixed;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (table[entry_of_row[i]].mixed) mixed.push_back(static_cast<RowId>(i));
  return mixed;
}

}  // namespace arboost
