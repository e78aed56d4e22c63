// Subtrees of small nodes, each grown at once by one thread: its rows stay in the cache, and no
// node passes the queue. grow/order.cpp assigns the nodes their order afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "grow/kernels/grow_kernels.h"

namespace arboost {

// A node of a subtree.
struct SubtreeNode {
  double gain = -1;          // of its split, in units; below 0: it is a leaf
  std::uint32_t begin, end;  // its elements, in the buffer of the node that the subtree began with
  std::uint32_t left = 0;    // offset of its left child; the right one follows
  std::uint32_t bin = 0;
  std::int32_t feature = 0;
  std::int32_t set = -1;  // which of the member's sets, or -1
  bool missing_left = false;
};

// Subtrees that one member has grown in a tree, with its scratch memory.
struct Subtrees {
  std::vector<SubtreeNode> nodes;
  std::vector<CodeSet> sets;

  // Nodes that are still to be split, and their sums [channels].
  struct Open {
    std::uint32_t node;
    std::int64_t depth;
    std::uint64_t path;
  };
  std::vector<Open> open;
  std::vector<std::int64_t> open_sums;
  std::vector<std::int64_t> sums, left_sums;  // of the node that is being split
  const std::uint8_t* codes = nullptr;        // NodeSplit::codes of its split
  std::vector<Element> spare;                 // rows on their way to the right

  void clear() {
    nodes.clear();
    sets.clear();
  }
};

}  // namespace arboost
