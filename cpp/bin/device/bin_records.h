// Records that the host and the kernels of binning exchange. Plain structs of fixed layout.
#pragma once

#include <cstdint>

#include "table/values.h"

namespace arboost::cuda {

// A column of the user's table in device memory: the value of row r is at values + r * stride.
struct DeviceColumn {
  const std::uint8_t* values;
  std::int64_t stride;  // bytes, of either sign
  double missing;       // stands for missing, as NaN does
  Type type;            // null: all rows are missing
};

// Rows of the table: those of an index, or all.
struct TableRows {
  const std::uint32_t* index;  // null: all
  std::uint64_t n;
};

// Rows and features of the tiles that a block encodes.
constexpr std::uint32_t coded_rows = 64, coded_features = 32;

// A feature to encode.
struct CodedFeature {
  DeviceColumn column;
  std::uint32_t first_edge, n_edges;  // in the list of all edges
  std::uint32_t n_levels;             // of a category; 0: a number
  std::uint8_t* codes;                // of all rows, of the table's width
};

struct EncodeWork {
  const CodedFeature* features = nullptr;
  TableRows rows{};
  std::uint64_t first_row = 0;  // row of the codes that the first one of `rows` is
  std::uint32_t n_features = 0;
  std::uint32_t by_row = 0;       // 1: values of a row are next to each other, not of a column
  std::uint32_t keeps_edges = 0;  // 1: the edges of a block's features are in shared memory
  std::uint32_t* has_missing = nullptr;  // by feature; begins as 0
};

// Stored columns that features share, as in bin/codes/layout.h: columns have digits, and digits
// have shares, each in a row.
struct SharedColumn {
  std::uint8_t* codes;  // of all rows
  std::uint32_t first_digit, n_digits;
};
struct SharedDigit {
  std::uint32_t stride, first_share, n_shares;
};
struct SharedFeature {
  const std::uint8_t* codes;  // of the feature, all rows
  std::uint8_t digit_of[256];
};

// Distinct values of a column that are not known yet, as keys in a hash set.
struct ValueSearch {
  DeviceColumn column;
  const double* known;  // ascending
  std::uint32_t n_known;
  std::uint32_t n_slots;      // a power of two
  std::uint32_t most;         // values; a search that finds more of them ends
  std::uint32_t* n_found;     // begins as 0
  unsigned long long* slots;  // begin as no_key
};

// Values of some rows of a column, copied as they are.
struct GatheredColumn {
  DeviceColumn column;
  std::uint8_t* to;
};

}  // namespace arboost::cuda
