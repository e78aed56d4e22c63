// A binned table whose rows are divided among the workers of a fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/collective.h"
#include "table/codes.h"

namespace arboost {

struct SharedCodes {
  const Codes& local_codes;  // of this worker's rows
  std::size_t first_row;     // their position in the table: those of lower ranks come before
  std::size_t n_rows;        // of all workers
  Collective& workers;
  std::size_t n_votes = 0;  // features that each worker proposes for a node; 0: no voting

  // Of some rows of the table, ascending: those of this worker, as numbers [begin, end).
  struct Range {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
  };
  Range own_of(std::span<const RowId> rows) const {
    const auto at = [&](std::size_t row) {
      return static_cast<std::size_t>(
          std::lower_bound(rows.begin(), rows.end(), row,
                           [](RowId a, std::size_t b) { return std::size_t{a} < b; }) -
          rows.begin());
    };
    return {at(first_row), at(first_row + local_codes.n_rows)};
  }
  // The same for all rows of the table.
  Range own_of_all() const { return {first_row, first_row + local_codes.n_rows}; }
  // Rows of this worker, by their numbers in its own table.
  std::vector<RowId> local(std::span<const RowId> rows) const {
    std::vector<RowId> local_rows;
    for (const RowId row : rows) local_rows.push_back(row - static_cast<RowId>(first_row));
    return local_rows;
  }
};

}  // namespace arboost
