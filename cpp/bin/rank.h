// Columns -> ranks: every distinct value of a feature is a bin of its own, and the rows are sorted
// by each feature.
#pragma once

#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/parallel.h"
#include "table/codes.h"
#include "table/columns.h"

namespace arboost {

// Codes of four bytes, n_bins[f] = number of distinct values of feature f, edges between
// neighbouring values, and:
//
//   value       -3   -3    0    2    2   ?      missing values last
//   place        7    1    4    0    6   3      row, with the highest bit set where a value begins
//   code of row  0    0    1    2    2   3
//
// Eight bytes a cell, and eight more for each distinct value.
struct Ranks : Codes {
  static constexpr std::uint32_t begins = std::uint32_t{1} << 31;

  Buffer<std::uint32_t> places;          // f0: rows by value | f1: rows by value | ...
  std::vector<std::uint32_t> n_present;  // rows whose value is not missing, per feature

  const std::uint32_t* order(std::size_t feature) const { return places.data() + feature * n_rows; }
};

// Ranks of the table's rows; -0.0 and 0.0 are one value.
//
// `n_levels` has, by feature, the number of levels of a category and 0 for numbers; empty: no
// categories. Ranks of a category are its values, the codes of its levels, whether they occur or
// not; other values of it are missing.
Ranks rank(const Columns& table, const Rows& rows, std::span<const std::uint32_t> n_levels,
           Team& team);

}  // namespace arboost
