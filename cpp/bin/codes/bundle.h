// Exclusive feature bundling (EFB): columns with few rows away from the usual code -> bundles in
// which hardly any row is away from it in two columns.
//
// A greedy colouring of the conflict graph: each column joins the first bundle that accepts it, and
// the order of columns with fewest bundles wins (Ke et al. 2017, section 4). Conflicts are not
// counted pair by pair: a bundle has a bit for every row in which one of its columns differs from
// its usual code, and a column tests the bits of its own such rows.
#pragma once

#include <cstdint>
#include <vector>

namespace arboost {

struct BundleColumn {
  std::uint32_t feature;
  std::uint32_t n_others;           // number of codes that are not the usual one
  std::vector<std::uint32_t> rows;  // rows with such a code, ascending
};

struct BundleLimits {
  std::size_t n_rows;
  std::uint32_t most_others;    // codes in a bundle, the usual ones apart
  std::size_t most_conflicts;   // rows of a bundle that more than one of its columns has
  std::size_t most_open = 100;  // bundles that a column is tried with; older ones are closed
};

// Indices of the columns of each bundle; columns that are alone are bundles of one.
// Cost: about the number of all columns' rows, times at most most_open.
std::vector<std::vector<std::uint32_t>> bundle(const std::vector<BundleColumn>& columns,
                                               const BundleLimits& limits);

}  // namespace arboost
