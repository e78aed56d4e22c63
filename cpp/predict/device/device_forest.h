// A forest in the memory of a CUDA device, and predictions there. The same bits as on the host.
//
// Tables of the host are copied or read into pinned memory, a chunk at a time, while the device
// works on the chunk before. Tables in device memory are read where they are. Rows become words of
// codes, which kernels walk (predict/device/walk_records.h). Any number of rows fits: chunks are
// made as small as free memory needs. Thread-safe: each call borrows buffers of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/device/device_columns.h"
#include "cuda/device.h"
#include "predict/device/forest_layout.h"
#include "predict/links.h"
#include "table/columns.h"

namespace arboost::cuda {

// Rows to predict on a device: a table of the host, or one in device memory.
struct TableSource {
  const Columns* host = nullptr;
  const DeviceColumns* device = nullptr;
  std::size_t n_rows = 0;
  HostMatrix matrix{};  // where the rows of a table of the host are sent as they are
};

TableSource device_source(const DeviceColumns& columns);

// Matrices are sent as they are, unless doubles of the columns that are used are fewer bytes; all
// other tables column by column.
TableSource host_source(const Columns& columns, std::size_t n_used);

// Where results go: [row] of some bytes each, on the host or in device memory.
struct RowSink {
  std::byte* host = nullptr;
  Address device = 0;
};

class DeviceForest {
 public:
  // Throws as pack_trees does.
  DeviceForest(int device, const Forest& forest, std::size_t n_columns, std::size_t n_outputs);
  ~DeviceForest();
  DeviceForest(const DeviceForest&) = delete;
  DeviceForest& operator=(const DeviceForest&) = delete;

  struct Combination {
    std::span<const double> base;
    double mean_of;                   // 0: sums
    std::span<const double> weights;  // of a median; else empty
  };
  // double [row][output]
  void scores(const TableSource& rows, const Combination& how, Team& team, RowSink out) const;
  // std::int32_t [row][tree]
  void leaves(const TableSource& rows, Team& team, RowSink out) const;

  Device& device() const { return device_; }
  const ForestLayout& trees() const { return trees_; }
  std::size_t n_columns() const { return n_columns_; }
  std::size_t n_outputs() const { return n_outputs_; }
  std::size_t n_trees() const { return trees_.tree_start.size() - 1; }

  // Work on the coded rows of a chunk, in the order of its queue.
  struct Chunk {
    Queue& queue;
    CodedRows rows;
    Address results;
    DeviceArray<std::byte>& scratch;
  };
  // Runs work on all rows, chunk by chunk; the sizes of results and scratch are bytes per row.
  void for_rows(const TableSource& rows, std::size_t result_bytes, std::size_t scratch_bytes,
                Team& team, RowSink out, const std::function<void(const Chunk&)>& work) const;

 private:
  struct Lane;      // buffers of a chunk, and its queue
  struct Borrowed;  // lanes of a call

  std::size_t rows_of_chunk(const TableSource& rows, std::size_t more_bytes) const;
  void send_rows(const TableSource& rows, std::size_t begin, std::size_t n, Team& team,
                 Lane& lane) const;
  void send_columns(const TableSource& rows, std::size_t begin, std::size_t n, Team& team,
                    Lane& lane) const;
  void code_chunk(const TableSource& rows, std::size_t begin, std::size_t n, Team& team,
                  Lane& lane) const;
  void finish_chunk(Lane& lane) const;
  AnyTrees any_trees() const;
  void walk_small(const Chunk& chunk, const ScoreRows& out) const;
  // Launches a kernel on trees of any depth, with several blocks for the same rows.
  template <class... Args>
  void walk_any(const char* kernel, const Chunk& chunk, std::size_t parts,
                const Args&... args) const;

  Device& device_;
  std::size_t n_columns_, n_outputs_, width_;
  ForestLayout trees_;

  DeviceArray<ForestNode> nodes_;
  DeviceArray<std::uint64_t> tree_start_;
  DeviceArray<std::uint32_t> order_, output_start_, small_nodes_;
  DeviceArray<double> values_, small_values_;
  DeviceArray<CodeSet> sets_;
  DeviceArray<TreeGroup> groups_;
  DeviceArray<double> thresholds_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::unique_ptr<Lane>> free_lanes_;
};

// Raw scores in device memory -> predictions and labels there. The same bits as on the host.
//
// Raw scores, `stride` numbers a row, the first `n_outputs` of which count.
struct RawRows {
  Address raw;
  std::size_t stride, n_outputs, n_rows;
};

// [row][answer_width]
void link_on_device(Device& device, Link link, const RawRows& rows, Address out);
// The scores of each row, ascending; they are one after the other.
void sort_on_device(Device& device, const RawRows& rows, Address out);
// The labels of the highest scores, each of the same number of bytes, to out[row * out_stride].
void label_on_device(Device& device, const RawRows& rows, std::span<const std::byte> labels,
                     std::size_t bytes, std::size_t out_stride, Address out);

}  // namespace arboost::cuda
