// Kernels of tree growth: a table of functions that isa/ fills for each instruction set.
//
// All variants give the same bits: sums are integers, and floating-point steps use only the
// correctly rounded operations + - * / without contraction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "grow/kernels/draw_row.h"
#include "grow/search/gain.h"
#include "grow/search/random_cut.h"
#include "grow/search/search_data.h"
#include "table/codes.h"
#include "tree/bits/bit_program.h"
#include "tree/rule.h"
#include "tree/tree_rows.h"

namespace arboost {

struct NarrowArgs {
  const FixedPair* pairs;  // by number
  TreeRows rows;
  int g_shift, h_shift;
  std::uint32_t seed;
  std::uint32_t first_position;  // of this worker's training rows among those of all
};

// A node for walks over codes: left if code <= bin or code == missing_left, or if the set holds the
// code. A leaf is its own child.
struct WalkNode {
  const std::uint8_t* column;  // codes, from that of row 0 of the table on
  std::uint32_t bin;
  std::uint32_t missing_left;
  std::uint32_t left;  // the right child follows it
  std::uint32_t set;   // which one, or no_set
};
constexpr std::uint32_t no_set = ~std::uint32_t{0};

constexpr std::size_t few_features = 48;  // above, sorting the hashes partly is faster

struct WalkArgs {
  int width;           // bytes of a code
  std::size_t stride;  // bytes from the code of a row to that of the next; the width with a program
  TreeRows rows;
  const WalkNode* nodes;
  const CodeSet* sets;  // null: there are none
  // For rows that walk together; test i + 1 is that of node i. Null unless many rows of the table
  // walk, which ascend, codes take one byte, and leaves are at most 256.
  const BitProgram* program;
  const std::uint32_t* leaves;  // their nodes, by number
  const std::uint32_t* splits;  // nodes, those of a column together
  std::size_t n_splits;
  std::size_t n_table_rows;  // of the columns, at least bit_rows
};

// Layout of a histogram: the first slot of each stored column.
struct Slots {
  const std::uint32_t* first;   // by stored column
  const std::uint32_t* stores;  // [n_stores] that have slots, ascending; null: all
  std::size_t stride;           // distance between columns when all have the same, else 0
  std::size_t n_stores;
  std::size_t first_sparse;  // where the slots of sparse columns begin
  std::size_t n_slots;       // with those of all sparse columns, or none of them

  std::size_t store(std::size_t j) const { return stores == nullptr ? j : stores[j]; }
};

struct GrowKernels {
  // hist[slot][channel] += (or -= if `subtract`) the contributions of the rows of n elements.
  void (*accumulate)(const RowCodes& codes, const Slots& slots, const RowSums& sums,
                     const Element* elements, std::size_t n, bool subtract, std::int64_t* hist);

  // Writes the elements that go left from left_begin upwards and the others from right_end
  // downwards; the two may share one array of n elements. Returns how many went left.
  std::size_t (*partition)(const ColumnCodes& column, const SplitRule& rule,
                           const Element* elements, std::size_t n, Element* left_begin,
                           Element* right_end);

  // The best split of one feature with a score above `floor`, from the feature's slots of a node's
  // histogram and the node's totals. Among equal scores the lowest bin wins, missing right first;
  // of sets of levels the first one: of the lowest level, or of the fewest levels of low gradients.
  FeatureSplit (*find_split)(const GainParams& params, const std::int64_t* feature_hist,
                             FeatureCodes codes, const std::int64_t* totals, double floor,
                             SplitScratch& scratch);

  // The same for a small node, from its rows and their contributions [n][channels].
  FeatureSplit (*find_split_small)(const GainParams& params, const FewRows& rows,
                                   std::size_t feature, double floor, SplitScratch& scratch);

  // The best split of a small node among several features, if above `best`; the first of equal
  // splits.
  void (*find_split_few)(const GainParams& params, const FewRows& rows, FeatureList features,
                         SplitScratch& scratch, NodeSplit& best);

  // The same with one random threshold a feature; for one-byte codes and numerical features, with
  // `scratch` and the values zero-padded by padded_rows. Returns the number of features that vary
  // among the rows.
  std::size_t (*find_cut_few)(const GainParams& params, const FewRows& rows, const CutDraws& draws,
                              FeatureList features, SplitScratch& scratch, NodeSplit& best);

  // The same for a feature with `n` listed codes: scratch has the codes in `bins`, ascending, their
  // prefix sums in `prefix`, and the last code's own sums in `missing`.
  FeatureSplit (*find_split_listed)(const GainParams& params, std::size_t n, std::size_t n_bins,
                                    const std::int64_t* totals, double floor,
                                    SplitScratch& scratch);

  // The first of the best among n candidate splits of any features, with left sums in
  // scratch.prefix; its score goes to scratch.scores. n if none is above `floor`.
  std::size_t (*find_candidate)(const GainParams& params, std::size_t n, const std::int64_t* totals,
                                double floor, SplitScratch& scratch);

  // The same as find_split for rows in the order of the feature's values; bins are ranks.
  FeatureSplit (*find_split_sorted)(const GainParams& params, const SortedRows& rows,
                                    const std::int64_t* totals, double floor,
                                    SplitScratch& scratch);

  // ranks[j] = a hash of the key and features[j].
  void (*rank_features)(std::uint64_t key, const std::uint32_t* features, std::size_t n,
                        std::uint64_t* ranks);

  // Writes those of n <= few_features features that have the `size` lowest hashes under the key, in
  // their order, with room for n. Returns their number; if it is not `size`, the hashes were not
  // compared in full, and the caller must do so.
  std::size_t (*draw_few)(std::uint64_t key, const std::uint32_t* features, std::size_t n,
                          std::size_t size, std::uint32_t* drawn);

  // The number that exactly `nth` of n distinct numbers are below; quadratic in n.
  std::uint64_t (*nth_of_few)(const std::uint64_t* numbers, std::size_t n, std::size_t nth);

  // Fixed-point pairs of the tree's rows [begin, end) -> elements with narrow pairs.
  void (*quantise_narrow)(const NarrowArgs& args, std::size_t begin, std::size_t end,
                          Element* elements);

  // values[0 ...] = the narrow pairs of n elements.
  void (*read_narrow)(const Element* elements, std::size_t n, std::int64_t* values);

  // norms[0 ...] = norms of the gradients of rows [begin, end).
  void (*gradient_norms)(const NormArgs& args, std::size_t begin, std::size_t end, float* norms);

  // Writes the drawn positions in [begin, end), and with norms their weights; returns their number.
  // The arrays must have room for all rows.
  std::size_t (*draw)(const DrawArgs& args, std::size_t begin, std::size_t end,
                      std::uint32_t* positions, float* weights);
  std::size_t (*draw_top)(const TopArgs& args, std::size_t begin, std::size_t end,
                          std::uint32_t* positions, float* weights);

  // leaves[0 ...] = the nodes that rows [begin, end) end in.
  void (*walk)(const WalkArgs& args, std::size_t begin, std::size_t end, std::uint32_t* leaves);

  // Slots of a shared column -> slots of each of its digits, one digit after the other; `rest` is
  // scratch of the same size.
  void (*fold)(const std::int64_t* slots, const std::uint32_t* radices, std::size_t n_digits,
               std::size_t channels, std::int64_t* rest, std::int64_t* digits);

  // target += source, and target -= source.
  void (*add)(std::int64_t* target, const std::int64_t* source, std::size_t n);
  void (*subtract)(std::int64_t* target, const std::int64_t* source, std::size_t n);
};

const GrowKernels& grow_kernels();

}  // namespace arboost
