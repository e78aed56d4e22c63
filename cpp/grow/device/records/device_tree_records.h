// Records of trees that grow on a device as a whole, level by level (grow/device/device_cart.h).
#pragma once

#include <cstdint>

#include "grow/device/records/device_records.h"
#include "grow/search/gain.h"

namespace arboost::cuda {

// Three kinds of nodes, by their number of rows: a warp grows the whole subtree of a small one, a
// row a lane, when all others are done; a block splits a medium one; of a large one, a block takes
// each tile of the rows.
constexpr std::uint32_t warp_rows = 32, block_rows = 4096, rows_of_tile = 2048;
constexpr std::uint32_t node_kinds = 2, medium_kind = 0, large_kind = 1;

constexpr std::uint32_t most_codes = 256;       // of a feature, missing included
constexpr std::uint32_t features_of_block = 4;  // whose histograms a block builds together
constexpr std::uint32_t search_room_bytes = 33 * most_codes + 32;  // shared, of a warp's search

// A node of a tree that grows.
struct TreeNode {
  double gain;               // of its split, in units; below 0: it is a leaf
  std::uint32_t begin, end;  // elements
  std::uint32_t left;        // left child; the right one follows
  std::int32_t feature;
  std::uint16_t bin;
  std::uint8_t missing_left;
  std::uint8_t buffer;  // which array of elements
  std::uint32_t set;    // of levels that go left: its number, from 1 on; 0: the split is by bin
};

// A node that may be split.
struct OpenNode {
  std::uint64_t path;
  std::uint32_t number, depth;
};

// Numbers of a level: of medium and large nodes that may be split, and of tiles of large ones.
struct LevelCounts {
  std::uint32_t n_open[node_kinds];
  std::uint32_t n_tiles, unused;
};

// Numbers of a tree; those of two levels take turns.
struct TreeCounts {
  LevelCounts levels[2];
  std::uint32_t n_nodes, n_small, n_sets, unused;
};

// Rows of a large node that one block takes.
struct RowTile {
  std::uint32_t open;   // number among the large nodes of the level
  std::uint32_t first;  // row of the node
};

// State of a large node. It begins as 0.
struct LargeNode {
  std::uint32_t left, right;            // rows that went to each side so far
  std::uint32_t n_searched, n_divided;  // features and tiles that are done
};

// The best split of one feature in a large node.
struct FoundCut {
  double score;
  std::int64_t left_h;  // over all outputs
  std::uint32_t bin, next;
  std::uint32_t is_valid, varies, missing_left, missing_seen;
  CodeSet levels;  // of a category: those on the left
};

// Nodes of one level that may be split.
struct TreeLevel {
  OpenNode* open;      // [kind][capacity]
  std::int64_t* sums;  // [kind][capacity][channels]
  RowTile* tiles;
  LevelCounts* counts;
  std::uint32_t capacity;
};

// Column of a feature.
struct TreeColumn {
  std::uint32_t store, n_bins, has_missing, is_category;
  const std::uint8_t* own_codes;  // by code of a shared column; null: it has a column of its own
};

// Limits of nodes that are split, as in TreePolicy::may_split.
struct SplitLimits {
  std::uint64_t min_rows;
  std::int64_t min_h;  // over all outputs
  std::uint32_t max_depth;
};

// One level of one tree.
struct TreeWork {
  GainParams gain;
  double min_gain;
  SplitLimits limits;
  DeviceCodes codes;
  const TreeColumn* columns;
  const double* edges;       // [feature][most_codes]
  const double* cut_values;  // [feature][most_codes], for random cuts; null: best cuts
  RowValues values;
  TargetPairs targets;
  // Features of a node are those of the lowest hashes of its path.
  std::uint64_t seed, number, cut_key;
  std::uint32_t n_features, n_drawn;
  TreeNode* nodes;
  std::uint32_t* n_nodes;
  CodeSet* sets;
  std::uint32_t* n_sets;
  OpenNode* small;  // of all levels
  std::uint32_t* n_small;
  std::uint32_t depth, buffer;  // of the level, and of its elements
  Element* elements[2];
  TreeLevel level, next;
  std::int64_t* left_sums;  // [medium node][channels]
  // By large node: state, left sums [channels], drawn features [n_drawn], histograms
  // [n_drawn][channels][most_codes] and the splits of features.
  LargeNode* large;
  std::int64_t* large_sums;
  std::uint16_t* drawn;
  std::int64_t* histograms;
  FoundCut* cuts;
  std::uint32_t first_large, n_large;  // of this launch: histograms of as many fit into memory
};

}  // namespace arboost::cuda
