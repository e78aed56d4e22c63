// A tree as kernels walk it, over the codes of a table.
#pragma once

#include <cstddef>
#include <vector>

#include "grow/device/records/device_records.h"
#include "grow/trees/grown_trees.h"
#include "table/codes.h"

namespace arboost::cuda {

struct WalkedTree {
  std::vector<WalkNode> nodes;
  std::vector<NodeTest> tests;  // read where a node is unusual
  bool has_unusual = false;
};

WalkedTree walked_tree(const GrownTrees& forest, std::size_t tree, const Codes& codes);

}  // namespace arboost::cuda
