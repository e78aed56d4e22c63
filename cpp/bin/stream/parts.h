// Codes of a table that is encoded in parts: the storage plan that all parts share, the parts put
// together in memory, and rows that are divided among workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/codes/plan.h"
#include "table/codes.h"
#include "table/columns.h"
#include "table/shared_codes.h"

namespace arboost {

// The plan of n_rows rows by some rows of a sample without sparse columns, of which only shareable
// columns are read. `has_missing` has 1 for columns with missing values, in the sample or in other
// rows.
StoragePlan plan_sample(const Columns& sample, std::span<const RowId> rows, std::size_t n_rows,
                        const std::vector<std::uint8_t>& has_missing, const Edges& edges,
                        const PlanOptions& options, Team& team);

// One plan for parts that have changed a plan, each in its own way: features that one of them moved
// out of their digit are out of it, and others have room for the codes of all parts.
StoragePlan join_plans(const StoragePlan& plan, std::span<const StoragePlan> changed);

// Parts of n_rows rows in all, in their order, with the same edges and plan. Of no rows, there is
// one part.
class CodesParts {
 public:
  explicit CodesParts(std::size_t n_rows) : n_rows_(n_rows) {}

  // Throws std::invalid_argument for a part that does not belong to the others.
  void append(const Codes& part, Team& team);
  Codes finish();

 private:
  std::size_t n_rows_, n_done_ = 0;
  bool has_layout_ = false;
  Codes all_;
};

// The rows of all workers, in the memory of each. Throws std::invalid_argument for sparse columns.
Codes gather_rows(const SharedCodes& codes, Team& team);

// A number that depends on the codes of all rows and their order, and not on the workers.
std::uint64_t checksum(const SharedCodes& codes, Team& team);

}  // namespace arboost
