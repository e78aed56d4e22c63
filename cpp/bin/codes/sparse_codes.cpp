// Cost: linear in the stored values, and one look-up a value. Parallel over columns, then over
// rows.
#include "bin/codes/sparse_codes.h"

#include <algorithm>

#include "bin/edges/lookup.h"
#include "bin/edges/thin.h"

namespace arboost {
namespace {

constexpr std::size_t rows_per_chunk = 1 << 16;

// Codes of the stored values of a sparse column.
class ThinColumn {
 public:
  ThinColumn(const Column& column, std::span<const double> edges)
      : column_(column), lookup_(edges, column.sparse->size) {
    const double fill = fill_of(column);
    std::uint32_t bucket;
    lookup_.codes(&fill, 1, &bucket, &usual_);
    missing_ = static_cast<std::uint16_t>(edges.size() + 1);
  }

  std::uint32_t usual() const { return usual_; }
  std::uint32_t n_bins() const { return missing_; }

  // Calls put(row, code) for the rows away from the usual code, ascending. Returns true if any
  // value is missing.
  template <class Put>
  bool read(const RowNumbers& numbers, std::size_t n_rows, const Put& put) const {
    double values[block_rows];
    std::uint32_t buckets[block_rows];
    std::uint16_t codes[block_rows];
    std::size_t n_own = 0;
    bool any_missing = false;
    for (std::size_t begin = 0; begin < column_.sparse->size; begin += block_rows) {
      const std::size_t n = std::min(block_rows, column_.sparse->size - begin);
      read_stored(column_, begin, begin + n, values);
      lookup_.codes(values, n, buckets, codes);
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t row = numbers.of(column_.sparse->rows[begin + i]);
        if (row == RowNumbers::nowhere) continue;
        ++n_own;
        any_missing |= codes[i] == missing_;
        if (codes[i] != usual_) put(row, codes[i]);
      }
    }
    return any_missing || (usual_ == missing_ && n_own < n_rows);
  }

 private:
  const Column& column_;
  Lookup<std::uint16_t> lookup_;
  std::uint16_t usual_ = 0, missing_ = 0;
};

void add_share(const ThinColumn& column, const RowNumbers& numbers, const DigitSource& digit,
               ShareSource& share, Codes& codes, std::uint8_t* stored) {
  std::size_t clashes = 0;
  const bool any_missing =
      column.read(numbers, codes.n_rows, [&](std::uint32_t row, std::uint16_t code) {
        const std::uint32_t is = stored[row] / digit.stride % digit.radix;
        if (digit.exclusive && is != 0) {
          ++clashes;
          return;
        }
        const auto more = (share.digit_of[code] - is) * digit.stride;
        stored[row] = static_cast<std::uint8_t>(stored[row] + more);
      });
  share.clashes.fetch_add(clashes);
  codes.has_missing[share.feature] = any_missing ? 1 : 0;
}

template <class Slot>
void fill_slots(std::size_t first_row, std::size_t last_row, int width,
                const std::vector<FeatureStorage>& places, SparseCodes& sparse) {
  std::vector<std::uint64_t> next(sparse.row_start.data() + first_row,
                                  sparse.row_start.data() + last_row);
  auto* slots = reinterpret_cast<Slot*>(sparse.slots.data());
  for (std::size_t c = 0; c < sparse.size(); ++c) {
    const RowId* all = sparse.rows.data();
    const RowId* end = all + sparse.start[c + 1];
    const RowId* row = std::lower_bound(all + sparse.start[c], end, first_row);
    const FeatureStorage& storage = places[sparse.features[c]];
    for (; row < end && *row < last_row; ++row) {
      const auto k = static_cast<std::size_t>(row - all);
      const std::uint32_t code =
          width == 1 ? sparse.codes[k]
                     : reinterpret_cast<const std::uint16_t*>(sparse.codes.data())[k];
      slots[next[*row - first_row]++] =
          static_cast<Slot>(sparse.first_slot[c] + storage.rank_of(code));
    }
  }
}

// Fills the entries by row from those by column: every chunk of rows searches all columns.
void order_by_row(std::size_t n_rows, int width, const std::vector<FeatureStorage>& places,
                  SparseCodes& sparse, Team& team) {
  sparse.row_start = Buffer<std::uint64_t>(n_rows + 1);
  std::uint64_t* start = sparse.row_start.data();
  std::fill_n(start, n_rows + 1, 0);
  for (std::size_t k = 0; k < sparse.n_stored(); ++k) ++start[sparse.rows[k] + 1];
  for (std::size_t row = 0; row < n_rows; ++row) start[row + 1] += start[row];
  sparse.slot_width = sparse.n_slots() <= 65536 ? 2 : 4;
  sparse.slots =
      Buffer<std::uint8_t>(sparse.n_stored() * static_cast<std::size_t>(sparse.slot_width));
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    sparse.slot_width == 2 ? fill_slots<std::uint16_t>(begin, end, width, places, sparse)
                           : fill_slots<std::uint32_t>(begin, end, width, places, sparse);
  });
}

}  // namespace

bool has_thin(const std::deque<StoreSource>& sources) {
  for (const StoreSource& source : sources)
    for (const DigitSource& digit : source.digits)
      for (const ShareSource& share : digit.shares)
        if (share.is_thin) return true;
  return false;
}

void add_thin(const Columns& table, const Rows& rows, const Edges& edges,
              std::deque<StoreSource>& sources, Codes& codes, Team& team) {
  const RowNumbers numbers(table, rows);
  team.for_chunks(0, sources.size(), 1, [&](std::size_t s, std::size_t, int) {
    std::uint8_t* stored = codes.column<std::uint8_t>(sources[s].store);
    for (DigitSource& digit : sources[s].digits)
      for (ShareSource& share : digit.shares)
        if (share.is_thin)
          add_share({table.columns[share.feature], edges[share.feature]}, numbers, digit, share,
                    codes, stored);
  });
}

void encode_sparse(const Columns& table, const Rows& rows, const Edges& edges,
                   const std::vector<std::uint32_t>& features, Codes& codes, Team& team) {
  if (features.empty()) return;
  constexpr std::size_t grain = 16;  // columns
  const RowNumbers numbers(table, rows);
  SparseCodes& sparse = codes.sparse;
  sparse.features = features;
  std::vector<std::size_t> sizes(features.size());
  team.for_chunks(0, features.size(), grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t c = begin; c < end; ++c) {
      const std::uint32_t f = features[c];
      const ThinColumn column(table.columns[f], edges[f]);
      std::size_t n = 0;
      const bool any_missing =
          column.read(numbers, codes.n_rows, [&](std::uint32_t, std::uint16_t) { ++n; });
      sizes[c] = n;
      codes.has_missing[f] = any_missing ? 1 : 0;
      FeatureStorage& storage = codes.where[f];
      storage.store = static_cast<std::uint32_t>(c);
      storage.usual = column.usual();
      storage.n_others = std::max(codes.n_codes(f), storage.usual + 1) - 1;
    }
  });
  std::uint64_t n_slots = 0;
  for (std::size_t c = 0; c < features.size(); ++c) {
    sparse.start.push_back(sparse.start[c] + sizes[c]);
    n_slots += codes.where[features[c]].n_others;
    sparse.first_slot.push_back(static_cast<std::uint32_t>(n_slots));
  }
  sparse.rows = Buffer<RowId>(sparse.n_stored());
  sparse.codes = Buffer<std::uint8_t>(sparse.n_stored() * static_cast<std::size_t>(codes.width));
  team.for_chunks(0, features.size(), grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t c = begin; c < end; ++c) {
      std::size_t k = sparse.start[c];
      const ThinColumn column(table.columns[features[c]], edges[features[c]]);
      column.read(numbers, codes.n_rows, [&](std::uint32_t row, std::uint16_t code) {
        sparse.rows[k] = row;
        if (codes.width == 1)
          sparse.codes[k] = static_cast<std::uint8_t>(code);
        else
          reinterpret_cast<std::uint16_t*>(sparse.codes.data())[k] = code;
        ++k;
      });
    }
  });
  order_by_row(codes.n_rows, codes.width, codes.where, sparse, team);
}

template <class Code>
void read_sparse(const Codes& codes, std::size_t feature, std::size_t begin, std::size_t end,
                 Code* out) {
  const FeatureStorage& storage = codes.where[feature];
  std::fill_n(out, end - begin, static_cast<Code>(storage.usual));
  const RowId* rows = codes.sparse.rows.data();
  const RowId* last = rows + codes.sparse.start[storage.store + 1];
  const auto* stored = reinterpret_cast<const Code*>(codes.sparse.codes.data());
  for (const RowId* row = std::lower_bound(rows + codes.sparse.start[storage.store], last, begin);
       row < last && *row < end; ++row)
    out[*row - begin] = stored[row - rows];
}

template void read_sparse(const Codes&, std::size_t, std::size_t, std::size_t, std::uint8_t*);
template void read_sparse(const Codes&, std::size_t, std::size_t, std::size_t, std::uint16_t*);

void read_codes(const Codes& codes, std::size_t feature, std::uint16_t* out) {
  codes.fetch();
  const FeatureStorage& storage = codes.where[feature];
  if (storage.kind != Storage::sparse) {
    for (std::size_t i = 0; i < codes.n_rows; ++i)
      out[i] = static_cast<std::uint16_t>(
          codes.width == 1 ? codes.decode(feature, codes.column<std::uint8_t>(storage.store)[i])
                           : codes.column<std::uint16_t>(storage.store)[i]);
  } else if (codes.width == 2) {
    read_sparse(codes, feature, 0, codes.n_rows, out);
  } else {
    std::vector<std::uint8_t> bytes(codes.n_rows);
    read_sparse(codes, feature, 0, codes.n_rows, bytes.data());
    std::copy(bytes.begin(), bytes.end(), out);
  }
}

}  // namespace arboost
