// Checks of arguments, and the largest number of rows.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace arboost {

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// Rows of a table to train on, those of all workers together, or of a sparse one, 2^29 - 1: the
// scaled gradients of all rows, rounded up by a unit each, have sums below 2^31 with room for their
// bits; RowId and Ranks::places hold more.
constexpr std::size_t most_rows = (std::size_t{1} << 29) - 1;

inline void check_row_count(std::size_t n_rows) {
  if (n_rows > most_rows)
    throw std::invalid_argument("The table has " + std::to_string(n_rows) + " rows, but at most " +
                                std::to_string(most_rows) +
                                " are allowed, those of all workers together. Use a part of the "
                                "rows.");
}

}  // namespace arboost
