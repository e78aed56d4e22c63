// Row-major copy, then a transposition in blocks. Linear in cells, parallel over rows.
#include "bin/codes/take.h"

#include <algorithm>
#include <bit>  // endian
#include <cstring>

#include "base/random.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;

// Row strides are multiples of 8 bytes, and the rows may be far apart in the table.
void copy_by_row(const RowCodes& from, const TreeRows& rows, std::size_t begin, std::size_t end,
                 Codes& out) {
  constexpr std::size_t ahead = 16;
  const std::size_t stride = from.stride;
  for (std::size_t i = begin; i < end; ++i) {
    if (i + ahead < end) prefetch(from.row<std::uint8_t>(rows.row(i + ahead)));
    const auto* source = from.row<std::uint8_t>(rows.row(i));
    std::uint8_t* target = out.by_row.data() + i * stride;
    for (std::size_t at = 0; at < stride; at += 8) std::memcpy(target + at, source + at, 8);
  }
}

// A matrix of 8 x 8 bytes in eight words: first single bytes change places with their neighbours
// across the diagonal, then pairs, then groups of four.
void transpose_bytes(std::uint64_t (&rows)[8]) {
  constexpr std::uint64_t masks[3] = {0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  for (int stage = 0; stage < 3; ++stage) {
    const int distance = 1 << stage, bits = 8 << stage;
    for (int a = 0; a < 8; ++a) {
      if (a & distance) continue;
      const std::uint64_t swap = ((rows[a] >> bits) ^ rows[a + distance]) & masks[stage];
      rows[a] ^= swap << bits;
      rows[a + distance] ^= swap;
    }
  }
}

// Rows -> columns in blocks of both, so that the lines that are written stay in the cache.
template <class Code>
void transpose(Codes& table, std::size_t begin, std::size_t end) {
  for (std::size_t s = 0; s < table.n_stores; ++s) {
    Code* column = table.column<Code>(s);
    for (std::size_t i = begin; i < end; ++i) column[i] = table.row<Code>(i)[s];
  }
}

// Lists of the rows, one after the other; and from them the columns, whose rows then ascend, too.
template <class Slot>
void take_sparse(const Codes& from, const TreeRows& rows, Codes& out) {
  const SparseCodes& old = from.sparse;
  SparseCodes& sparse = out.sparse;
  const std::size_t n_columns = old.size(), width = static_cast<std::size_t>(from.width);
  sparse.features = old.features;
  sparse.first_slot = old.first_slot;
  sparse.slot_width = old.slot_width;
  sparse.row_start = Buffer<std::uint64_t>(rows.n + 1);
  sparse.row_start[0] = 0;
  for (std::size_t i = 0; i < rows.n; ++i)
    sparse.row_start[i + 1] = sparse.row_start[i] + old.row_start[rows.row(i) + std::size_t{1}] -
                              old.row_start[rows.row(i)];
  const std::size_t n_stored = sparse.row_start[rows.n];
  sparse.slots = Buffer<std::uint8_t>(n_stored * sizeof(Slot));
  auto* slots = reinterpret_cast<Slot*>(sparse.slots.data());
  std::vector<std::uint32_t> column_of(old.n_slots());
  for (std::size_t c = 0; c < n_columns; ++c)
    std::fill(column_of.begin() + old.first_slot[c], column_of.begin() + old.first_slot[c + 1],
              static_cast<std::uint32_t>(c));
  std::vector<std::uint64_t> sizes(n_columns, 0);
  for (std::size_t i = 0; i < rows.n; ++i) {
    const Slot* list = old.row_slots<Slot>() + old.row_start[rows.row(i)];
    for (std::size_t k = sparse.row_start[i]; k < sparse.row_start[i + 1]; ++k) {
      slots[k] = *list++;
      ++sizes[column_of[slots[k]]];
    }
  }
  for (const std::uint64_t size : sizes) sparse.start.push_back(sparse.start.back() + size);
  sparse.rows = Buffer<RowId>(n_stored);
  sparse.codes = Buffer<std::uint8_t>(n_stored * width);
  std::vector<std::uint64_t> next = sparse.start;
  for (std::size_t i = 0; i < rows.n; ++i)
    for (std::size_t k = sparse.row_start[i]; k < sparse.row_start[i + 1]; ++k) {
      const std::uint32_t column = column_of[slots[k]];
      const FeatureStorage& storage = from.where[sparse.features[column]];
      const std::uint32_t code = storage.code_of(slots[k] - sparse.first_slot[column]);
      const std::size_t to = next[column]++;
      sparse.rows[to] = static_cast<RowId>(i);
      if (width == 1)
        sparse.codes[to] = static_cast<std::uint8_t>(code);
      else
        reinterpret_cast<std::uint16_t*>(sparse.codes.data())[to] =
            static_cast<std::uint16_t>(code);
    }
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

void copy_by_column(Codes& table, std::size_t begin, std::size_t end) {
  constexpr std::size_t block = 64;
  for (std::size_t first = begin; first < end; first += block) {
    const std::size_t last = std::min(first + block, end);
    if (table.width == 2) {
      transpose<std::uint16_t>(table, first, last);
    } else if (last - first < block || std::endian::native != std::endian::little) {
      transpose<std::uint8_t>(table, first, last);
    } else {
      for (std::size_t s = 0; s < table.n_stores; s += 8) {
        const std::size_t n = std::min<std::size_t>(8, table.n_stores - s);
        for (std::size_t i = first; i < last; i += 8) {
          std::uint64_t words[8];
          for (std::size_t j = 0; j < 8; ++j)
            std::memcpy(&words[j], table.row<std::uint8_t>(i + j) + s, 8);
          transpose_bytes(words);
          for (std::size_t j = 0; j < n; ++j)
            std::memcpy(table.column<std::uint8_t>(s + j) + i, &words[j], 8);
        }
      }
    }
  }
}

Codes take_rows(const Codes& from, const TreeRows& rows, Team& team) {
  from.fetch();
  Codes out = from.layout();
  out.n_rows = rows.n;
  out.first_slot = from.first_slot;
  out.by_row = Buffer<std::uint8_t>(out.bytes_by_row());
  out.by_column = Buffer<std::uint8_t>(out.bytes_by_column());
  const auto [begin_row, end_row] = from.stored_rows ? rows.span() : TableSpan{0, from.n_rows};
  from.each_window(begin_row, end_row, [&](const RowWindow& window) {
    const std::size_t first = from.stored_rows ? rows.first_from(window.begin) : 0;
    const std::size_t n = (from.stored_rows ? rows.first_from(window.end) : rows.n) - first;
    team.for_chunks(0, n, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
      copy_by_row(from.row_codes(window), rows, first + begin, first + end, out);
      copy_by_column(out, first + begin, first + end);
    });
  });
  if (from.sparse.size() > 0)
    from.sparse.slot_width == 2 ? take_sparse<std::uint16_t>(from, rows, out)
                                : take_sparse<std::uint32_t>(from, rows, out);
  return out;
}

std::uint64_t hash_codes(const std::uint8_t* bytes, std::size_t n, std::uint64_t seed) {
  std::uint64_t hash = mix_bits(seed + 1);
  for (std::size_t at = 0; at < n; at += 8) {
    std::uint64_t word = 0;  // the padding of rows is arbitrary
    std::memcpy(&word, bytes + at, n - at < 8 ? n - at : 8);
    hash = mix_bits(hash ^ word) + at;
  }
  return hash;
}

std::vector<std::uint64_t> row_keys(const Codes& codes) {
  codes.fetch();
  std::vector<std::uint64_t> keys(codes.n_rows);
  const std::size_t n_bytes = codes.n_stores * static_cast<std::size_t>(codes.width);
  codes.each_window(0, codes.n_rows, [&](const RowWindow& window) {
    const RowCodes rows = codes.row_codes(window);
    for (std::size_t i = window.begin; i < window.end; ++i)
      keys[i] = hash_codes(rows.row<std::uint8_t>(static_cast<RowId>(i)), n_bytes, 0);
  });
  const SparseCodes& sparse = codes.sparse;
  const auto width = static_cast<std::size_t>(codes.width);
  for (std::size_t c = 0; c < sparse.size(); ++c)
    for (std::size_t k = sparse.start[c]; k < sparse.start[c + 1]; ++k) {
      const std::uint64_t code = hash_codes(sparse.codes.data() + k * width, width, 0);
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
