// Rows with the same codes but other targets: no tree on these codes can separate them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "table/codes.h"

namespace arboost {

// A hash of all codes of each row. Not for ranks. Linear in stored codes; single-threaded.
std::vector<std::uint64_t> row_keys(const Codes& codes);

// The rows, ascending, whose key is also that of a row with another target. `targets` has n_targets
// numbers for each row. Linear in rows; single-threaded.
std::vector<RowId> mixed_rows(std::span<const std::uint64_t> keys, std::span<const double> targets,
                              std::size_t n_targets);

}  // namespace arboost
