// Split search: its input (rows of a node), scratch memory and result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "table/codes.h"
#include "tree/level_groups.h"
#include "tree/rule.h"
#include "tree/tree_rows.h"

namespace arboost {

// The best split of one feature: left are codes <= bin, and missing values when missing_left; or,
// by_set, the codes of a set.
struct FeatureSplit {
  double score = 0;       // sum of the two children's scores
  bool is_valid = false;  // the score is above the floor
  std::uint32_t bin = 0;
  bool missing_left = false;
  bool missing_seen = false;  // some of the node's rows are missing here
  std::uint32_t next = 0;     // small nodes: the lowest code on the right, missing included
  bool by_set = false;
  CodeSet left;  // by_set: covers all codes, also those unseen in the node
};

constexpr std::size_t most_level_codes = 256;  // of a category: at most 255 levels, and missing
constexpr std::uint32_t pool_code = 256;       // of several levels

// The levels of a category that occur in a node, by code, with their sums.
struct LevelSums {
  explicit LevelSums(std::size_t channels) : sums(most_level_codes * channels), pooled(channels) {}

  void clear() {
    n = 0;
    seen = {};
  }

  std::size_t n = 0;
  CodeSet seen;  // all that occur
  std::uint32_t codes[most_level_codes];
  Buffer<std::int64_t> sums;  // [n][channels]
  double keys[most_level_codes];
  std::uint16_t order[most_level_codes];   // of the levels by key
  std::uint16_t places[most_level_codes];  // grouped category: in the order of all groups
  CodeSet pool;                            // the rare ones, when they are one entry, pool_code
  const LevelGroups* groups = nullptr;     // of a grouped category
  Buffer<std::int64_t> pooled;             // [channels]
};

constexpr std::size_t codes_together = 4;  // features of a small node that are read in one pass

// Scratch memory of one thread, for features of up to `max_bins` value bins.
struct SplitScratch {
  SplitScratch(std::size_t max_bins, std::size_t channels)
      : stride(max_bins + 32),  // room for the padding of vectorised loops
        prefix(stride * channels),
        rough(stride),
        rough_sums(stride),
        hessians(stride),
        scores(stride),
        bins(stride),
        touched(256 * codes_together, 0),
        slots(256 * (channels < codes_together ? codes_together : channels), 0),
        missing(channels, 0),
        left(channels, 0),
        sides(3 * channels, 0),
        levels(channels) {}

  std::size_t stride;                 // from one channel's prefix sums to the next
  Buffer<std::int64_t> prefix;        // [channels][stride]: sums over the codes up to each bin
  Buffer<std::int32_t> rough;         // [stride]: scores after each bin, as the bits of floats
  Buffer<float> rough_sums;           // [stride]: over the outputs
  Buffer<std::int64_t> hessians;      // [stride]: of all outputs, on the left
  Buffer<double> scores;              // [stride]: the same scores as doubles
  Buffer<std::uint32_t> bins;         // small nodes: the codes that occur, in order
  std::vector<std::uint8_t> touched;  // small nodes: which codes occur; all zero between calls
  std::vector<std::int64_t> slots;    // small nodes: their sums; all zero between calls
  std::vector<std::int64_t> missing;  // small nodes: sums of the missing rows
  std::vector<std::int64_t> left;     // sums of the left side of the split that was returned
  std::vector<std::uint64_t> keys;    // small nodes, two-byte codes: [rows] (code, row) pairs
  std::vector<std::uint8_t> codes;    // random cuts: [cut_group][rows + padded_rows]
  // Sorted rows: `left` of the best split with missing values on the right, the same on the left,
  // and running sums.
  std::vector<std::int64_t> sides;
  LevelSums levels;  // categories
};

// Codes of a feature: those of its values, and whether the next one is of missing values.
struct FeatureCodes {
  std::uint32_t n_bins;
  bool has_missing;
  bool by_set;  // a category, which is split by a set of its levels
};

// The rows of a node in the order of one feature's values, missing ones last.
struct SortedRows {
  const Element* elements;  // [n]: row id below, rank of its value in the high 32 bits
  std::size_t n;
  std::uint32_t n_values;  // of the feature; the rank of missing values
  bool by_set;             // a category: ranks are codes of levels, rows are in any order
  RowSums sums;            // wide
};

// Rows that are scanned at once; SplitScratch must have room for a few entries more.
constexpr std::size_t sorted_block = 1024;

// Rows side by side (grow/memory/row_block.h).
struct DenseRows {
  const std::uint8_t* first = nullptr;    // codes of row i from first + i * stride on; null: none
  std::size_t stride = 0, lanes = 0;      // bytes of a row, and of its codes with their padding
  const std::uint8_t* columns = nullptr;  // by feature: where a row has its code
  const std::uint8_t* missing = nullptr;  // [lanes]: code of missing values; 255 where none is
  bool any_missing = false;

  const std::uint8_t* column(std::size_t feature) const { return first + columns[feature]; }
};

// The rows of a small node, of a table without sparse columns.
struct FewRows {
  const Codes* codes;
  // By feature: map from the 256 codes of its stored column to its own codes; null for a column
  // that is not shared, or altogether if no column is.
  const std::uint8_t* const* tables;
  const Element* elements;     // [n]
  const std::int64_t* values;  // [channels] of row i from values + i * value_stride on
  std::size_t value_stride;
  std::size_t n;
  const std::int64_t* totals;  // [channels]
  DenseRows dense;             // the same rows, of one-byte codes

  bool is_dense() const { return dense.first != nullptr; }
  const std::uint8_t* table(std::size_t feature) const {
    return tables == nullptr || is_dense() ? nullptr : tables[feature];
  }
};

struct FeatureList {
  const std::uint32_t* first;
  std::size_t n;
};

struct NodeSplit {            // the best of a node among several features
  std::int32_t feature = -1;  // -1: none
  FeatureSplit split;
  std::int64_t* left_sums;  // [channels]
};

constexpr std::size_t padded_rows = 32;  // that loops over random thresholds may read past the end
constexpr std::size_t cut_group = 8;     // features whose random thresholds are drawn together
constexpr std::size_t few_candidates = 1024;  // scored together; SplitScratch must have room

}  // namespace arboost
