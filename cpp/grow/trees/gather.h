// Trees of several growers -> the arrays of one forest, with thresholds in place of bins.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "grow/trees/grown_trees.h"

namespace arboost {

struct TreeRef {
  const GrownTrees* from;
  std::size_t tree;
};

// Arrays by node, one tree after the other; entries that only splits have are 0 for leaves.
struct GatheredNodes {
  std::int32_t* feature;
  double* threshold;  // values up to it go left; infinite after the last bin
  std::int32_t* left;
  std::uint8_t* default_left;
  double* value;  // [node][width]
  double* gain;
  double* cover;
  std::int32_t* set;  // which one, or -1
};

// The first node of each tree, and the number of nodes.
std::vector<std::int64_t> tree_starts(std::span<const TreeRef> trees);

// Fills the arrays, which have room for all nodes; returns the sets of levels in the order of their
// nodes. edges[f] are those between the bins of feature f.
std::vector<CodeSet> gather_trees(std::span<const TreeRef> trees,
                                  std::span<const std::span<const double>> edges, Team& team,
                                  const GatheredNodes& out);

}  // namespace arboost
