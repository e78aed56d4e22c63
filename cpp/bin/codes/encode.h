// Columns and edges -> the binned table.
#pragma once

#include <optional>
#include <vector>

#include "base/parallel.h"
#include "bin/codes/plan.h"
#include "table/codes.h"
#include "table/columns.h"

namespace arboost {

// Code of x = number of edges strictly below x; missing values have the code edges.size() + 1.
// Edges ascend, at most 2^32 - 3 a column; above 65,534 the codes are of four bytes, by column
// only.
//
// `categorical` has 1 for columns whose values are codes of levels, with the edges 0.5, 1.5, ...
// between at most 255 of them; other values of such a column are missing. Empty: no categories.
//
// The plan names the features that share stored columns; a feature that turns out not to fit gets a
// column of its own. Without a plan, sparse columns are stored sparsely and all others in columns
// of their own. Ranks have no plan.
Codes encode(const Columns& table, const Rows& rows, const Edges& edges,
             const std::vector<std::uint8_t>& categorical, const StoragePlan* plan, Team& team);

struct PartOptions {
  bool rows_only = false;  // no column-major codes, for a file; not with sparse columns
  Codes* spent = nullptr;  // codes that are not needed any longer, whose memory is used again
};

// The same for a part of the rows, by the plan of all: none where a feature does not fit, and the
// plan is then changed so that it does.
std::optional<Codes> encode_part(const Columns& table, const Rows& rows, const Edges& edges,
                                 const std::vector<std::uint8_t>& categorical, StoragePlan& plan,
                                 Team& team, const PartOptions& options = {});

// Codes without bytes and storage: numbers of rows and bins, edges, categories, width.
Codes start_codes(std::size_t n_rows, const Edges& edges,
                  const std::vector<std::uint8_t>& categorical);

}  // namespace arboost
