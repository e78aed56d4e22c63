// Impurity decreases of a tree's splits -> the order of cost-complexity pruning.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// Minimal cost-complexity pruning (Breiman, Friedman, Olshen and Stone 1984, chapter 3): the branch
// below node t is worth alpha(t) = (sum of the decreases of its splits) / (number of its splits).
// Repeatedly, the node with the smallest alpha becomes a leaf, among equal ones the first in
// preorder, until only the root is left.
struct PruneOrder {
  std::vector<std::int32_t> node;  // that becomes a leaf, step by step
  std::vector<double> alpha;       // of that node, at that step
  std::vector<double> kept;        // before each step and after the last: decreases of all splits
};

// `left` are the left children of one tree (right = left + 1, 0 for a leaf); `decrease` of a split
// is what it takes off the impurity, that of a leaf is not read.
// Throws std::invalid_argument unless every node but the first is the child of one node before it.
PruneOrder prune_order(std::span<const std::int32_t> left, std::span<const double> decrease);

}  // namespace arboost
