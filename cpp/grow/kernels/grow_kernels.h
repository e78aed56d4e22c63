// The inner loops of growing: a table of functions, which isa/ fills for each instruction set.
//
// All variants give the same bits: sums are integers, and floating-point steps use only the
// correctly rounded operations + - * / without contraction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "grow/search/gain.h"
#include "grow/search/random_cut.h"
#include "grow/search/search_data.h"
#include "table/codes.h"
#include "tree/rule.h"
#include "tree/tree_rows.h"

namespace arboost {

struct NormArgs {
  const FixedPair* pairs;
  std::size_t row_stride, output_stride, outputs;
  float g_unit, h_unit;  // what one integer of a gradient and of a hessian counts
  bool squared;          // the square of the norm instead: in the same order, and cheaper
};

struct DrawArgs {
  std::uint32_t seed;
  std::uint32_t limit;   // without norms: rows whose hash is at most this are kept
  NormArgs norms;        // no pairs: all rows are equal
  float mu;              // the norm from which on a row is sure to be kept
  float largest_weight;  // no row is less likely than its inverse
};

// Rows of large norm, and some of the others. Chances are shares of 2^24.
struct TopArgs {
  std::uint32_t seed;
  NormArgs norms;           // all that is said of norms holds for their squares
  float above;              // rows of this norm or a larger one are kept
  float at;                 // below that, rows from this norm on may count as large ones
  std::int32_t at_large;    // the chance of these rows to count as large
  std::int32_t at_kept;     // ... and to be kept at all
  std::int32_t other_kept;  // the chance of all other rows to be kept
  float weight;             // of rows that are kept by chance
};

struct NarrowArgs {
  const FixedPair* pairs;  // by number
  TreeRows rows;
  int g_shift, h_shift;
  std::uint32_t seed;
};

// A node as it is walked over codes: left where code <= bin or code == missing_left, or where the
// set holds the code. A leaf leads to itself.
struct WalkNode {
  const std::uint8_t* column;  // codes, from that of row 0 of the table on
  std::uint32_t bin;
  std::uint32_t missing_left;
  std::uint32_t left;  // the right child follows it
  std::uint32_t set;   // which one, or no_set
};
constexpr std::uint32_t no_set = ~std::uint32_t{0};

struct WalkArgs {
  int width;  // bytes of a code
  TreeRows rows;
  const WalkNode* nodes;
  std::size_t n_nodes;
  const CodeSet* sets;  // null: there are none
  int depth;            // of the deepest leaf
};

// Where in a histogram the slots of each stored column begin.
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
  // hist[slot][channel] += (or -= when `subtract`) what each of the n elements' rows holds.
  void (*accumulate)(const Codes& codes, const Slots& slots, const RowSums& sums,
                     const Element* elements, std::size_t n, bool subtract, std::int64_t* hist);

  // Writes the elements that go left from left_begin upwards and the others from right_end
  // downwards; the two may share one array of n elements. Returns how many went left. The column
  // has codes of `width` bytes, by row of the table.
  std::size_t (*partition)(const std::uint8_t* column, int width, const SplitRule& rule,
                           const Element* elements, std::size_t n, Element* left_begin,
                           Element* right_end);

  // The best split of one feature with a score above `floor`, from the feature's slots of a node's
  // histogram and the node's totals. Among equal scores the lowest bin wins, missing right first.
  FeatureSplit (*find_split)(const GainParams& params, const std::int64_t* feature_hist,
                             std::size_t n_bins, bool has_missing, const std::int64_t* totals,
                             double floor, SplitScratch& scratch);

  // The same for a small node, straight from its rows and what each holds ([n][channels]); of a
  // category by a set.
  FeatureSplit (*find_split_small)(const GainParams& params, const FewRows& rows,
                                   std::size_t feature, double floor, SplitScratch& scratch);

  // The best split of a small node among several features, if above `best`; of equals the first.
  void (*find_split_few)(const GainParams& params, const FewRows& rows, FeatureList features,
                         SplitScratch& scratch, NodeSplit& best);

  // The same of one random cut for each feature; codes of one byte, no categories, and the room
  // that `scratch` and the values have for padded_rows more is full of zeros. Returns how many of
  // the features vary among the rows.
  std::size_t (*find_cut_few)(const GainParams& params, const FewRows& rows, const CutDraws& draws,
                              FeatureList features, SplitScratch& scratch, NodeSplit& best);

  // The same for a feature of which `n` codes may occur: scratch has them in order in `bins`, the
  // running sums over them in `prefix`, and the last one's own sums in `missing`.
  FeatureSplit (*find_split_listed)(const GainParams& params, std::size_t n, std::size_t n_bins,
                                    const std::int64_t* totals, double floor,
                                    SplitScratch& scratch);

  // The first best of n candidates, splits of any features, whose left sums are in scratch.prefix;
  // its score goes to scratch.scores. n where none is above `floor`.
  std::size_t (*find_candidate)(const GainParams& params, std::size_t n, const std::int64_t* totals,
                                double floor, SplitScratch& scratch);

  // The best split of a category by a set of its levels, from a histogram as above. Among equal
  // scores the first set wins: of the lowest level, or of the fewest levels of low gradients.
  FeatureSplit (*find_set)(const GainParams& params, const std::int64_t* feature_hist,
                           std::size_t n_bins, bool has_missing, const std::int64_t* totals,
                           double floor, SplitScratch& scratch);

  // The same for rows whose ranks are codes of levels, in any order.
  FeatureSplit (*find_set_sorted)(const GainParams& params, const SortedRows& rows,
                                  const std::int64_t* totals, double floor, SplitScratch& scratch);

  // The same as find_split for rows in the order of the feature's values; bins are ranks.
  FeatureSplit (*find_split_sorted)(const GainParams& params, const SortedRows& rows,
                                    const std::int64_t* totals, double floor,
                                    SplitScratch& scratch);

  // ranks[j] = a hash of the key and features[j].
  void (*rank_features)(std::uint64_t key, const std::uint32_t* features, std::size_t n,
                        std::uint64_t* ranks);

  // The number that `nth` of n different numbers are below; quadratic in n.
  std::uint64_t (*nth_of_few)(const std::uint64_t* numbers, std::size_t n, std::size_t nth);

  // Fixed-point pairs of the tree's rows [begin, end) -> elements with narrow pairs.
  void (*quantise_narrow)(const NarrowArgs& args, std::size_t begin, std::size_t end,
                          Element* elements);

  // norms[0 ...] = norms of the gradients of rows [begin, end).
  void (*gradient_norms)(const NormArgs& args, std::size_t begin, std::size_t end, float* norms);

  // The positions in [begin, end) that are drawn, and with norms their weights; how many. There is
  // room for all.
  std::size_t (*draw)(const DrawArgs& args, std::size_t begin, std::size_t end,
                      std::uint32_t* positions, float* weights);
  std::size_t (*draw_top)(const TopArgs& args, std::size_t begin, std::size_t end,
                          std::uint32_t* positions, float* weights);

  // leaves[0 ...] = the nodes that rows [begin, end) end in.
  void (*walk)(const WalkArgs& args, std::size_t begin, std::size_t end, std::uint32_t* leaves);

  // The slots of a stored column -> those of each of its digits, one digit after the other; `rest`
  // has room for as many slots.
  void (*fold)(const std::int64_t* slots, const std::uint32_t* radices, std::size_t n_digits,
               std::size_t channels, std::int64_t* rest, std::int64_t* digits);

  // target += source, and target -= source.
  void (*add)(std::int64_t* target, const std::int64_t* source, std::size_t n);
  void (*subtract)(std::int64_t* target, const std::int64_t* source, std::size_t n);
};

const GrowKernels& grow_kernels();

}  // namespace arboost
