// Tables whose rows are divided among workers: a copy of all rows, and a checksum of them.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "table/shared_codes.h"

namespace arboost {

// The rows of all workers, in the memory of each. Throws std::invalid_argument for sparse columns.
Codes gather_rows(const SharedCodes& codes, Team& team);

// A number that depends on the codes of all rows and their order, and not on the workers.
std::uint64_t checksum(const SharedCodes& codes, Team& team);

}  // namespace arboost
