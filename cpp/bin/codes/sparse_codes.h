// Sparse columns -> codes. The cost depends on the stored values, not on all rows.
#pragma once

#include <vector>

#include "base/parallel.h"
#include "bin/codes/layout.h"
#include "bin/codes/plan.h"
#include "table/codes.h"
#include "table/columns.h"

namespace arboost {

// True if sparse features share stored columns; add_thin adds their codes to stored columns that
// hold those of the dense features.
bool has_thin(const std::deque<StoreSource>& sources);
void add_thin(const Columns& table, const Rows& rows, const Edges& edges,
              std::deque<StoreSource>& sources, Codes& codes, Team& team);

// The sparse store of some features, ascending.
void encode_sparse(const Columns& table, const Rows& rows, const Edges& edges,
                   const std::vector<std::uint32_t>& features, Codes& codes, Team& team);

// The codes of rows [begin, end) of a sparse feature.
template <class Code>
void read_sparse(const Codes& codes, std::size_t feature, std::size_t begin, std::size_t end,
                 Code* out);

// All codes of a feature, however it is stored; not of ranks.
void read_codes(const Codes& codes, std::size_t feature, std::uint16_t* out);

}  // namespace arboost
