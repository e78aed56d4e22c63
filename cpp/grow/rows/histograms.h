// Histograms of nodes: a pool of reused memory, and parallel building.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/workspace.h"
#include "grow/trees/grow_node.h"

namespace arboost {

class Histograms {
 public:
  Histograms(const Codes& codes, std::size_t memory_limit, Workspace& workspace);

  // Restricts histograms to the stored columns of these features, ascending, with sparse columns
  // only if a feature is sparse; invalidates existing histograms.
  void use_features(std::span<const std::uint32_t> features);

  // Numbers in a slot: one for each output and, if one more, the count of rows. Takes effect with
  // release_all.
  void use_channels(std::size_t channels) { channels_ = channels; }
  std::size_t channels() const { return channels_; }
  // Contributions of rows to these histograms.
  RowSums sums_of(const RowPartition& rows) const {
    const RowSums& sums = rows.sums();
    return {sums.wide, sums.outputs, channels_ > static_cast<std::size_t>(sums.outputs)};
  }

  const Slots& slots() const { return slots_; }
  std::size_t max_bins() const { return max_bins_; }  // value bins of the feature that has most
  // Cost of adding a row, in updates of one slot.
  double updates_per_row() const { return updates_per_row_; }
  std::size_t size() const { return slots_.n_slots * channels_; }
  std::size_t memory_limit() const { return memory_limit_; }

  // First slot of each column, ascending, sparse ones last; then the number of slots.
  std::vector<std::size_t> column_starts() const;
  // Slots of the feature's column; only for features that histograms have.
  struct ColumnSlots {
    std::size_t first, n;
  };
  ColumnSlots column_of(std::size_t feature) const;

  std::int64_t* acquire();
  std::int64_t* acquire_zeroed();
  void release(std::int64_t* histogram);  // null is fine
  // True while memory is short and a node should not keep its histogram for its children.
  bool scarce() const { return !has_room(0); }
  // True if one more node can be expanded while `n_others` are, with two more histograms each; or
  // if the histograms of all members are a small part of the memory.
  bool has_room_for_node(std::size_t n_others, std::size_t n_members) const;
  void release_all();

  // Adds n rows to part `part` of `n_parts` of a histogram, which are different columns.
  void add(const RowCodes& codes, const RowPartition& rows, const Element* elements, std::size_t n,
           std::size_t part, std::size_t n_parts, std::int64_t* histogram) const;

  // The sums of a node's rows, in a histogram that the caller releases.
  std::int64_t* build(const Codes& codes, const RowPartition& rows, const GrowNode& node,
                      int member, Team& team);

 private:
  std::size_t bytes() const { return size() * sizeof(std::int64_t); }
  bool has_room(std::size_t n_more) const;
  bool divides_columns(std::size_t n_parts) const;
  std::size_t block_columns() const;
  std::size_t cached_columns() const;
  void add_columns(const RowCodes& codes, const RowSums& sums, const Element* elements,
                   std::size_t n, std::size_t begin, std::size_t end,
                   std::int64_t* histogram) const;
  std::int64_t* build_columns(const Codes& codes, const RowPartition& rows, const GrowNode& node,
                              int member, Team& team);

  const Codes& codes_;
  std::size_t channels_ = 1, memory_limit_, max_bins_ = 1;
  double updates_per_row_ = 1;
  std::vector<std::uint32_t> first_slot_, stores_;
  std::vector<std::uint32_t> every_store_;  // 0, 1, ...; for blocks of columns
  Slots slots_{};
  std::size_t all_slots_ = 0;  // with slots for everything
  std::atomic<std::size_t> in_use_{0};
  std::mutex mutex_;  // guards what follows
  Workspace& space_;
  std::vector<std::int64_t*> free_;
};

}  // namespace arboost
