#include "bin/take.h"

#include <algorithm>
#include <bit>  // endian
#include <cstring>

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;

#if defined(_MSC_VER)
void prefetch(const void*) {}
#else
void prefetch(const void* address) {
  __builtin_prefetch(address);
}
#endif

// Row strides are multiples of 8 bytes, and the rows may be far apart in the table.
void copy_by_row(const Codes& from, const TreeRows& rows, std::size_t begin, std::size_t end,
                 Codes& out) {
  constexpr std::size_t ahead = 16;
  const std::size_t stride = from.row_stride;
  for (std::size_t i = begin; i < end; ++i) {
    if (i + ahead < end) prefetch(from.by_row.data() + rows.row(i + ahead) * stride);
    const std::uint8_t* source = from.by_row.data() + rows.row(i) * stride;
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
  for (std::size_t f = 0; f < table.n_features; ++f) {
    Code* column = table.column<Code>(f);
    for (std::size_t i = begin; i < end; ++i) column[i] = table.row<Code>(i)[f];
  }
}

void copy_by_column(Codes& table, std::size_t begin, std::size_t end) {
  constexpr std::size_t block = 64;
  for (std::size_t first = begin; first < end; first += block) {
    const std::size_t last = std::min(first + block, end);
    if (table.width == 2) {
      transpose<std::uint16_t>(table, first, last);
    } else if (last - first < block || std::endian::native != std::endian::little) {
      transpose<std::uint8_t>(table, first, last);
    } else {
      for (std::size_t f = 0; f < table.n_features; f += 8) {
        const std::size_t n = std::min<std::size_t>(8, table.n_features - f);
        for (std::size_t i = first; i < last; i += 8) {
          std::uint64_t words[8];
          for (std::size_t j = 0; j < 8; ++j)
            std::memcpy(&words[j], table.row<std::uint8_t>(i + j) + f, 8);
          transpose_bytes(words);
          for (std::size_t j = 0; j < n; ++j)
            std::memcpy(table.column<std::uint8_t>(f + j) + i, &words[j], 8);
        }
      }
    }
  }
}

}  // namespace

Codes take_rows(const Codes& from, const TreeRows& rows, Team& team) {
  Codes out;
  out.n_rows = rows.n;
  out.n_features = from.n_features;
  out.width = from.width;
  out.row_stride = from.row_stride;
  out.n_bins = from.n_bins;
  out.has_missing = from.has_missing;
  out.edges = from.edges;
  out.is_category = from.is_category;
  out.first_slot = from.first_slot;
  out.by_row = Buffer<std::uint8_t>(rows.n * from.row_stride);
  out.by_column =
      Buffer<std::uint8_t>(rows.n * from.n_features * static_cast<std::size_t>(from.width));
  team.for_chunks(0, rows.n, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    copy_by_row(from, rows, begin, end, out);
    copy_by_column(out, begin, end);
  });
  return out;
}

}  // namespace arboost
