// Records that the host and the kernels exchange. Plain structs of fixed layout.
#pragma once

#include <cstdint>

#include "cuda/answer.h"
#include "tree/split_rule.h"
#include "tree/tree_rows.h"

namespace arboost::cuda {

// Rows of one launch are divided into tiles; a tile never spans two nodes.
constexpr std::uint32_t tile_rows = 2048;

// Above all sums of hessians, of which a largest one is taken.
constexpr std::int64_t most_h = std::int64_t{1} << 62;

// Threads of a block that builds histograms, and blocks of a multiprocessor: their tables of 64 KB
// share its memory.
constexpr int table_threads = 512;
constexpr int tables_of_processor = 3;

// Codes of a table in device memory, as in table/codes.h.
struct DeviceCodes {
  const std::uint8_t* by_row;
  const std::uint8_t* by_column;
  std::uint64_t n_rows;
  std::uint32_t n_stores, row_stride, width;
  // Sparse columns.
  const std::uint64_t* sparse_start;
  const RowId* sparse_rows;
  const std::uint8_t* sparse_codes;
  const std::uint64_t* row_start;
  const std::uint8_t* row_slots;
  std::uint32_t slot_width;  // bytes; 0: no sparse column
  std::uint32_t first_sparse;
};

// Tree row i -> its position among the training rows, and its row in the table.
struct RowNumbers {
  const std::uint32_t* positions;  // null: i
  const RowId* table_rows;         // by position; null: the position
};

// Place of a feature's stored column, and of its first code in an array by code.
struct ProposedColumn {
  std::uint32_t store, first;
};

// Pairs of a tree's rows, at i * row_stride + k * output_stride.
struct PairRows {
  const FixedPair* pairs;
  std::uint64_t row_stride, output_stride;
  RowNumbers rows;
  std::uint32_t n, seed, outputs;
  int g_shift, h_shift;
  std::uint32_t first_position;  // of position 0 among the training rows of all workers
};

// Contributions of elements: an output each, and the count of rows if there is a channel more.
struct RowValues {
  const PackedSum* wide;  // null: narrow pairs in the elements
  std::uint32_t outputs, channels;
};

// Pairs of the training rows without the weights of a sample, for purity.
struct TargetPairs {
  const FixedPair* pairs;  // at position * row_stride + k * output_stride
  std::uint64_t row_stride, output_stride;
  const std::uint32_t* position_of_row;  // null: the row
  std::uint32_t outputs;
};

// Elements of a node.
struct RowRange {
  std::uint32_t begin, end, buffer;
};

// Test of a row at a node.
struct NodeTest {
  SplitRule rule;
  std::uint32_t store;   // stored column, or number among the sparse ones
  std::uint32_t usual;   // sparse: code of rows that are not stored
  std::uint32_t sparse;  // 1: of a sparse column
  std::uint32_t left;    // left child in a tree that is walked; 0: a leaf
};

// A node that is split: its elements, and the histograms of its children.
struct NodeWork {
  NodeTest test;
  std::uint32_t begin, end;  // elements
  std::uint32_t buffer;      // which array of elements
  std::uint32_t first_tile;  // of the launch
  std::int64_t* parent;      // histogram; null: there is none, or none is needed
  // Histograms to build: of the smaller child, and of the larger one where there is no parent's;
  // or, in batches by side, of the left and the right one. Null: not needed.
  std::int64_t* children[2];
};

// State of a split on the device: elements that went to each side so far.
struct NodeCount {
  std::uint32_t left, right;
};

// State of a batch.
struct BatchCount {
  std::uint32_t n_blocks;    // that are done with the partition
  std::uint32_t n_rows;      // of all segments
  std::uint32_t n_searches;  // that are done
};

// Elements whose sums are added to a histogram.
struct Segment {
  std::uint32_t begin, end, buffer;
  std::uint32_t first_row;  // of the launch
  std::int64_t* histogram;
};

// Search of one node's best split.
struct NodeSearch {
  std::int64_t total;  // packed sum
  double floor, lower, upper;
  std::uint32_t first_feature, n_features;  // in the list of the batch
  std::uint32_t node, side;                 // 0: the left child of that node of the batch; 1: right
};

// The best split of a feature in a node, or of a node.
struct FoundSplit {
  double score;
  std::int64_t left;  // packed sum
  std::uint32_t bin, next, feature;
  std::uint8_t is_valid, missing_left, missing_seen, by_set;
  CodeSet levels;         // by_set: on the left
  std::uint8_t has_rows;  // 1: both sides have enough rows, which were counted
};

// A batch of nodes. State, counts and n_done begin as 0. The host waits for the answer, which is
// given after the searches or, without any, after the partition.
struct BatchWork {
  const NodeWork* nodes;
  const NodeSearch* searches;
  const std::uint32_t* features;
  BatchCount* state;
  NodeCount* counts;
  std::uint32_t* n_done;    // features of each search
  NodeCount* final_counts;  // in the host's memory
  FoundSplit* best;         // by search; in the host's memory
  std::int64_t* best_left;  // vector leaves: [search][output], there, too
  Answer answer;
  Segment* segments;   // two a node
  FoundSplit* splits;  // [search][most_features]
  // Sums of blocks that have a part of a segment, [block + segment][histogram_size]; null: they are
  // added to the histograms one by one, which begin as 0.
  std::int64_t* parts;
  std::uint32_t n_nodes, n_searches, n_tiles, most_features;
  std::uint32_t n_shares;  // blocks that build histograms
  std::uint32_t histogram_size;
  std::uint32_t is_combined;  // else searches add up the parts
  std::uint32_t is_by_side;   // else children are the smaller and the larger one
  // Rows on the sides of a best split are counted, in nodes of a few, where the hessian of a side
  // is below certain_h; 0: nowhere.
  std::int64_t certain_h, min_rows;
  const Element* elements[2];
  const std::uint8_t* by_column;
  std::uint64_t n_table_rows;
  std::uint32_t code_width;
};

// Rows that one block counts while others wait.
constexpr std::uint32_t most_counted_rows = 16384;

// Groups of levels of a category, as in tree/level_groups.h.
struct GroupColumn {
  CodeSet shared;
  std::uint32_t n;
  std::uint8_t order[256];
};

// Columns of the features, for searches.
struct FeatureColumn {
  std::uint32_t store, first_slot, n_bins;
  std::int32_t direction;  // of a monotone constraint
  std::uint32_t has_missing;
  std::uint32_t is_category;
  const GroupColumn* groups;  // null: none
  // Of a stored column that is not the feature's alone: its slots, the feature's code in each, and
  // the code of all rows that have no slot, where there are some. Null: slots are by code.
  const std::uint8_t* own_codes;
  std::uint32_t n_slots;
  std::uint32_t usual;  // no_code: all rows have a slot
};

// A node of a tree that rows walk, in one load.
struct WalkNode {
  std::uint32_t left;   // child; 0: a leaf
  std::uint32_t store;  // with is_unusual: the test is that of NodeTest
  std::uint32_t bin, missing_left;
};
constexpr std::uint32_t is_unusual = 1u << 31;

// A tree that is added to scores: its factor, its first node among those of all, and the first
// output it adds to.
struct RoundTree {
  double factor;
  std::uint32_t first, output;
};

}  // namespace arboost::cuda
