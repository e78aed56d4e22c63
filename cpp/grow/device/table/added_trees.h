// Trees of a forest, added to the scores of rows on a device: one copy and one launch for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/device.h"
#include "grow/device/records/device_records.h"
#include "grow/device/table/device_table.h"
#include "grow/trees/grown_trees.h"

namespace arboost::cuda {

// A tree that is added, times its factor, to the scores of an output on.
struct AddedTree {
  std::size_t tree, output;
  double factor;
};

// Rows of a table and their scores [n][outputs].
struct ScoredRows {
  RowNumbers rows;
  std::uint32_t n;
  std::size_t outputs;
  double* scores;
};

class TreeAdder {
 public:
  // Adds trees in turn. Their splits refer to `codes`, which are those of the table.
  void add(Device& device, Queue& queue, const DeviceTable& table, const Codes& codes,
           const GrownTrees& forest, std::span<const AddedTree> trees, const ScoredRows& rows);

 private:
  DeviceArray<std::byte> trees_;  // of the last call
  PinnedBytes sent_;
};

}  // namespace arboost::cuda
