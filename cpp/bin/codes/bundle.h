// Columns that are seldom away from their usual code -> bundles of which hardly a row has two.
//
// A bundle is a colour: columns that conflict must not have the same one. The best colouring is out
// of reach, so columns are taken one after the other and put into the first bundle that takes them;
// of several orders the one that needs fewest bundles wins (Ke et al. 2017, section 4). Conflicts
// are not counted pair by pair: a bundle keeps a bit for every row that one of its columns has, and
// a column looks at the bits of its own rows.
#pragma once

#include <cstdint>
#include <vector>

namespace arboost {

struct BundleColumn {
  std::uint32_t feature;
  std::uint32_t n_others;           // codes but the usual one
  std::vector<std::uint32_t> rows;  // that have one of them, ascending
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
