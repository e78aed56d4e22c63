// Storage plan: the features that share stored columns, and those that are stored sparsely.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "table/columns.h"

namespace arboost {

using Edges = std::vector<std::span<const double>>;

// True if a column is sparse with so few stored values that sparse storage pays. Never a
// categorical column: unknown levels are found row by row.
bool is_thin(const Columns& table, std::size_t feature,
             const std::vector<std::uint8_t>& categorical);

// A feature's part of a digit.
struct Share {
  std::uint32_t feature;
  std::uint32_t usual;    // its most frequent code; of a thin column that of rows not stored
  std::uint32_t n_codes;  // that the digit has room for
  bool operator==(const Share&) const = default;
};

// One share: the digit is the feature's code. More: an exclusive digit, 0 where every feature has
// its usual code, and else the code of the first of them, by number, that has another.
struct DigitPlan {
  std::vector<Share> shares;

  bool exclusive() const { return shares.size() > 1; }
  std::uint32_t radix() const {
    std::uint32_t codes = shares.front().n_codes;
    for (std::size_t i = 1; i < shares.size(); ++i) codes += shares[i].n_codes - 1;
    return codes;
  }
};

// Features that are in no digit and not sparse have a stored column of their own.
struct StoragePlan {
  std::vector<DigitPlan> digits;
  std::vector<std::uint32_t> sparse;  // features, ascending
  std::size_t n_rows = 0;
  double max_conflict_rate = 0;  // share of the rows where an exclusive digit may be wrong

  // Digits that share each stored column, by number: their radices multiply to at most 256, and the
  // rows save more by that than the folding of digits costs.
  std::vector<std::vector<std::uint32_t>> columns() const;
};

struct PlanOptions {
  std::vector<std::uint8_t> categorical;  // as encode() has it
  bool bundling;
  double max_conflict_rate;
};

// A plan that fits the sampled rows: all, or about 30,000 of them, chosen by a hash. encode() sees
// all rows and moves out features that do not fit.
StoragePlan plan_storage(const Columns& table, const Rows& rows, const Edges& edges,
                         const PlanOptions& options, Team& team);

// The steps of plan_storage(), for tables in other memory than the host's.
//
// Dense features that may share a stored column: those of few codes. Empty where nothing is shared.
std::vector<std::uint32_t> shareable(const Columns& table, const Edges& edges,
                                     const PlanOptions& options, std::size_t n_rows);
// Rows of the table that the plan is made from.
std::vector<RowId> choose_plan_rows(const Rows& rows, Team& team);
// The plan of a fit of n_rows rows. `sample` are rows of `table`, of which only shareable and
// sparse columns are read.
StoragePlan plan_from(const Columns& table, std::span<const RowId> sample, std::size_t n_rows,
                      const Edges& edges, const PlanOptions& options, Team& team);

// The plan without sharing: sparse columns are stored sparsely, all others in columns of their own.
StoragePlan plain_plan(const Columns& table, const std::vector<std::uint8_t>& categorical);

}  // namespace arboost
