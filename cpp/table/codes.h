// The binned table: bin codes in row-major and column-major order, and the mapping from features to
// stored columns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/buffer.h"
#include "base/types.h"
#include "table/stored_rows.h"

namespace arboost {

// Storage of a feature's codes. In many columns most rows have one and the same code, the usual
// code: 0 for flags, counts and word frequencies.
//
//   single   a stored column has the feature's codes and nothing else
//   shared   stored codes of one byte are numbers of mixed radix, code = sum of digit * stride over
//            the column's digits. A digit is a feature's code, or it is exclusive: of features of
//            which no row, or hardly any, has more than one away from its usual code. It is 0 where
//            all have that, and else counts the other codes of one feature after the other.
//   sparse   only what is not the usual code is stored, with its row
enum class Storage : std::uint8_t { single, shared, sparse };

struct FeatureStorage {
  Storage kind = Storage::single;
  bool exclusive = false;
  std::uint32_t store = 0;  // stored column, or number among the sparse ones
  std::uint32_t digit = 0;  // shared: number among the digits of the table
  std::uint32_t first = 0;  // exclusive: digit of the lowest code that is not the usual one
  std::uint32_t usual = 0;  // exclusive and sparse
  std::uint32_t n_others =
      0;  // exclusive and sparse: number of codes that are not the usual one, missing included

  // Index of a code among the codes that are not the usual one, and the inverse.
  std::uint32_t rank_of(std::uint32_t code) const { return code - (code > usual ? 1 : 0); }
  std::uint32_t code_of(std::uint32_t rank) const { return rank + (rank >= usual ? 1 : 0); }
  bool operator==(const FeatureStorage&) const = default;
};

struct Digit {
  std::uint32_t store, stride, radix;
  bool operator==(const Digit&) const = default;
};

// Entries of sparse columns that differ from the usual code, by column and by row.
//
//   by column   rows[k], codes[k] for k in [start[c], start[c + 1]): rows ascend
//   by row      slots[k] for k in [row_start[r], row_start[r + 1]): column c owns the histogram
//               slots [first_slot[c], first_slot[c + 1]), one for each of its other codes
struct SparseCodes {
  std::vector<std::uint32_t> features;  // of each column, ascending
  std::vector<std::uint64_t> start{0};
  Buffer<RowId> rows;
  Buffer<std::uint8_t> codes;  // of the table's width
  std::vector<std::uint32_t> first_slot{0};
  Buffer<std::uint64_t> row_start;
  int slot_width = 2;  // bytes of a slot: 2, or 4 where there are more than 2^16
  Buffer<std::uint8_t> slots;

  std::size_t size() const { return features.size(); }
  std::size_t n_slots() const { return first_slot.back(); }
  std::size_t n_stored() const { return start.back(); }
  template <class Slot>
  const Slot* row_slots() const {
    return reinterpret_cast<const Slot*>(slots.data());
  }
};

// Codes of one column: that of row r is at first + r * stride.
struct ColumnCodes {
  RowZero first;
  std::size_t stride;  // bytes
  int width;           // bytes of a code
};

// Codes of all stored columns, row by row: those of row r from first + r * stride on.
struct RowCodes {
  RowZero first;
  std::size_t stride;  // bytes
  int width;           // bytes of a code
  const SparseCodes* sparse;

  template <class Code>
  const Code* row(RowId r) const {
    return reinterpret_cast<const Code*>(first + r * stride);
  }
};

struct Codes;

// Codes of a table in other memory than the host's.
class DistantCodes {
 public:
  virtual ~DistantCodes() = default;
  // Fills by_row and by_column of the codes, once. Thread-safe.
  void fetch(const Codes& codes);

 private:
  virtual void copy(const Codes& codes) = 0;
  std::mutex mutex_;
  std::atomic<bool> is_here_ = false;
};

// A binned table. Feature f has n_bins[f] codes for values, in the order of the values; missing
// values have the code n_bins[f]. Stored columns are kept in both orders, because histograms read
// all columns of one row and partitions read one column of many rows.
//
//   by_row      row 0: s0 s1 ... pad | row 1: s0 s1 ... pad | ...      row_stride bytes a row
//   by_column   s0: row 0, row 1, ... | s1: row 0, row 1, ... | ...    n_rows codes a stored column
//
// A code takes one byte while every feature has at most 255 bins (and missing), two up to 65,535,
// and four above. Codes of four bytes are ranks of values (bin/rank.h), too many for histograms, so
// by_row and first_slot are empty. Only codes of one byte share stored columns.
struct Codes {
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::size_t n_stores = 0;    // stored columns
  int width = 1;               // bytes of one code: 1, 2 or 4
  std::size_t row_stride = 0;  // bytes from one row to the next in by_row, a multiple of 8
  mutable Buffer<std::uint8_t> by_row;
  mutable Buffer<std::uint8_t> by_column;
  // Null: by_row and by_column are here. Otherwise they are empty until fetch(), which must come
  // before the host reads a stored code.
  std::shared_ptr<DistantCodes> distant;
  void fetch() const {
    if (distant) distant->fetch(*this);
  }
  // Null: in memory. Otherwise by_row and by_column are always empty: rows are read from a file,
  // and no column is sparse.
  std::shared_ptr<const StoredRows> stored_rows;
  // Calls use(window) for the windows that hold rows of [begin, end), in order: one, where rows are
  // in memory.
  void each_window(std::size_t begin, std::size_t end,
                   FunctionRef<void(const RowWindow&)> use) const {
    if (stored_rows) return stored_rows->each_window(begin, end, use);
    if (begin < end) use({0, n_rows, by_row.data()});
  }
  std::size_t window_rows() const { return stored_rows ? stored_rows->window_rows() : n_rows; }
  RowCodes row_codes(const RowWindow& window) const {
    return {window.row_zero, row_stride, width, &sparse};
  }
  RowCodes row_codes() const { return {by_row.data(), row_stride, width, &sparse}; }
  std::size_t bytes_by_row() const { return n_rows * row_stride; }
  std::size_t bytes_by_column() const {
    return n_rows * n_stores * static_cast<std::size_t>(width);
  }
  std::vector<std::uint32_t> n_bins;       // codes for values, per feature
  std::vector<std::uint8_t> has_missing;   // 1 where a training value is missing
  std::vector<std::vector<double>> edges;  // between the bins, per feature
  // 1 for categorical features, whose codes are unordered levels, at most 255; empty: no
  // categorical feature.
  std::vector<std::uint8_t> is_category;
  bool has_levels(std::size_t feature) const {
    return !is_category.empty() && is_category[feature] != 0;
  }
  std::vector<FeatureStorage> where;  // per feature
  std::vector<Digit> digits;          // those of one stored column together, strides ascending
  SparseCodes sparse;
  // Histogram slots: stored column s owns slots [first_slot[s], first_slot[s + 1]), one for each of
  // its codes. Those of sparse columns follow. Throws where they are more than 2^31 - 1.
  std::vector<std::uint32_t> first_slot;
  void number_slots();
  // Has room for missing values of other rows of the table, where `others` has 1.
  void add_missing(const std::vector<std::uint8_t>& others);

  // The table without its rows and its sparse columns.
  Codes layout() const;
  // Codes of `rows` rows to be filled, with the columns of these codes, none of them sparse.
  Codes empty_copy(std::size_t rows) const;

  // Every feature has a stored column of its own.
  void give_own_places();
  bool is_plain() const { return n_stores == n_features && digits.empty(); }
  // Number of codes that the feature's rows may have.
  std::uint32_t n_codes(std::size_t feature) const {
    return n_bins[feature] + has_missing[feature];
  }
  // The feature's code for a given code of its stored column, shared or not.
  std::uint32_t decode(std::size_t feature, std::uint32_t stored) const;

  template <class Code>
  const Code* row(std::size_t i) const {
    return reinterpret_cast<const Code*>(by_row.data() + i * row_stride);
  }
  template <class Code>
  const Code* column(std::size_t store) const {
    return reinterpret_cast<const Code*>(by_column.data()) + store * n_rows;
  }
  template <class Code>
  Code* column(std::size_t store) {
    return reinterpret_cast<Code*>(by_column.data()) + store * n_rows;
  }
  // The same as bytes, whatever the width.
  const std::uint8_t* column_bytes(std::size_t store) const {
    return by_column.data() + store * n_rows * static_cast<std::size_t>(width);
  }
  ColumnCodes column_codes(std::size_t store) const {
    return {column_bytes(store), static_cast<std::size_t>(width), width};
  }
  // The same from the row-major order; not for ranks.
  ColumnCodes codes_in_rows(std::size_t store) const { return codes_in_rows(store, by_row.data()); }
  ColumnCodes codes_in_rows(std::size_t store, RowZero row_zero) const {
    return {row_zero + store * static_cast<std::size_t>(width), row_stride, width};
  }
};

}  // namespace arboost
