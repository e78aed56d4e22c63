// Rows of a binned table: copies, keys, and rows with the same codes but other targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "table/codes.h"
#include "tree/tree_rows.h"

namespace arboost {

// Fills the column-major codes of rows [begin, end) from the row-major ones; of at most two bytes.
void copy_by_column(Codes& table, std::size_t begin, std::size_t end);

// Copies the rows, by number, in both orders. Every tree walks the validation rows, which are
// fastest to read when contiguous.
Codes take_rows(const Codes& from, const TreeRows& rows, Team& team);

// A hash of n bytes of codes.
std::uint64_t hash_codes(const std::uint8_t* bytes, std::size_t n, std::uint64_t seed);

// A hash of all codes of each row. Not for ranks. Linear in stored codes; single-threaded.
std::vector<std::uint64_t> row_keys(const Codes& codes);

// The rows, ascending, whose key is also that of a row with another target: no tree on these codes
// can separate them. `targets` has n_targets numbers for each row. Linear in rows; single-threaded.
std::vector<RowId> mixed_rows(std::span<const std::uint64_t> keys, std::span<const double> targets,
                              std::size_t n_targets);

}  // namespace arboost
