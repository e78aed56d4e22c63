// A node during growth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow/search/search_data.h"  // FeatureSplit

namespace arboost {

// A node during growth: its rows, sums and best split.
struct GrowNode {
  std::size_t begin = 0, end = 0;  // its elements, of the rows in this process
  int buffer = 0;                  // which of the two element arrays holds them
  std::size_t all_rows = 0;        // its rows in all processes
  std::int64_t depth = 0;
  std::uint64_t path = 1;          // hash of the path from the root
  std::int32_t id = -1;            // index in the finished tree, set when its parent is committed
  std::size_t number = 0;          // in the order of creation
  std::vector<std::int64_t> sums;  // [channels]
  std::vector<std::int64_t> left_sums;  // [channels], of the rows that its best split sends left
  std::int64_t* histogram = nullptr;    // kept while the node may still be expanded
  bool is_whole = true;                 // it has the sums of all columns, not of a part of them
  std::vector<std::uint32_t> groups;    // of interacting features that hold its whole path
  double lower = -1, upper = 1;         // bounds of its step by monotone constraints, in units
  double gain = -1;                     // of its best split, in units; below 0: it is a leaf
  std::int32_t feature = -1;
  std::uint32_t position = 0;  // of the feature among those that all workers have searched
  FeatureSplit split;
  bool taken = false;      // by a thread, or dropped
  bool expanded = false;   // its children exist
  bool committed = false;  // ... and are part of the tree
  int subtree_of = -1;     // member that has grown its subtree, from this node of the member on
  std::size_t subtree = 0;
  GrowNode* left = nullptr;
  GrowNode* right = nullptr;

  std::size_t n_rows() const { return end - begin; }
};

}  // namespace arboost
