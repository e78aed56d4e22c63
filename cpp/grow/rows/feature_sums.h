// Sums over a node's stored slots -> sums over each feature's codes.
//
// Features share stored columns and leave out their usual code (table/codes.h); the split search
// needs the sums of each feature alone. The sums of a usual code are the node's minus those of all
// other codes. Unshared columns need no conversion.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/rows/histograms.h"
#include "table/codes.h"

namespace arboost {

class FeatureSums {
 public:
  FeatureSums(const Codes& codes, std::size_t most_channels);

  // Opens a node with a histogram, which must not change meanwhile.
  void open(const std::int64_t* histogram, const Slots& slots, std::size_t channels);
  // Opens a small node of n rows with contributions `values` [n][channels]. The cost depends on the
  // stored codes of these rows in shared and sparse columns.
  void open(const Element* elements, std::size_t n, const std::int64_t* values,
            const RowSums& sums);

  // The sums [n_codes][channels] of the feature's codes, in `buffer` or in the histogram itself.
  const std::int64_t* of(std::size_t feature, const std::int64_t* totals,
                         std::vector<std::int64_t>& buffer) const;

  // False where all rows of a small node have the usual code of a sparse feature.
  bool varies(std::size_t feature) const;

  // Lists the codes of a sparse feature in a small node, its usual code included, ascending in
  // scratch for GrowKernels::find_split_listed. Returns their number.
  std::size_t list(std::size_t feature, const std::int64_t* totals, SplitScratch& scratch) const;
  bool is_small() const { return is_small_; }

  // Appends the left sums of all splits of a feature without missing values to the n entries of
  // scratch.prefix. Returns the new number of entries.
  std::size_t add_candidates(std::size_t feature, const std::int64_t* totals, std::size_t n,
                             SplitScratch& scratch, std::vector<std::int64_t>& buffer) const;

 private:
  // Sparse slots of a small node: all zero between nodes, with a bit for each nonzero slot, so that
  // clearing and listing cost only the nonzero ones.
  struct Touched {
    Buffer<std::int64_t> sums;
    std::vector<std::uint64_t> slots, words;  // a bit for each slot; for each word of these

    void mark(std::size_t slot) {
      slots[slot / 64] |= std::uint64_t{1} << (slot % 64);
      words[slot / 4096] |= std::uint64_t{1} << (slot / 64 % 64);
    }
    // Calls use(slot) for the marked ones in [begin, end).
    template <class Use>
    void for_each(std::size_t begin, std::size_t end, const Use& use) const;
    bool any(std::size_t begin, std::size_t end) const;
  };

  // The codes of a feature but the usual one, [n_others][channels].
  const std::int64_t* others(const FeatureStorage& storage) const;
  void fold(const Slots& slots);
  void clear();
  template <class Slot>
  void touch(const Element* elements, std::size_t n, const std::int64_t* values);

  const Codes& codes_;
  std::size_t most_channels_, channels_;  // of any node; of the one that is open
  bool is_small_ = false;
  const std::int64_t* stored_ = nullptr;  // slots of stored columns ...
  const std::uint32_t* first_ = nullptr;  // ... and where each column's begin
  const std::int64_t* sparse_ = nullptr;  // slots of sparse columns

  // Digits of stored columns that have several: folded, at these offsets.
  std::vector<std::uint32_t> radices_, digit_slot_;  // by digit
  std::vector<std::uint32_t> digits_begin_;          // by stored column
  std::vector<std::int64_t> rest_, folded_;

  // Small nodes: slots of the shared columns alone.
  std::vector<std::uint32_t> shared_, shared_first_;
  Slots shared_slots_{};
  std::vector<std::int64_t> shared_sums_;
  Touched touched_;
};

}  // namespace arboost
