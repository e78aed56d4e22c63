// A table of numbers in the memory of a device: views of the user's arrays. Row indices and
// launches of the kernels of binning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/device/bin_records.h"
#include "cuda/device.h"
#include "cuda/staging.h"
#include "table/columns.h"

namespace arboost::cuda {

struct DeviceColumns {
  int device = 0;
  std::size_t n_rows = 0;
  std::vector<DeviceColumn> columns;
  std::vector<std::shared_ptr<const void>> owners;  // keep the memory alive

  // True if the values of a row are closer than those of a column.
  bool by_row() const;
};

// Copies in the host's memory of the values of some columns: of the given rows, in their order, or
// of all. The other columns have the type null, so that columns keep their numbers.
Columns gather(const DeviceColumns& table, std::span<const std::uint32_t> columns, const Rows& rows,
               Team* team = nullptr);

// A matrix in the memory of the host whose columns are those of a table: rows of `row_bytes`, one
// after the other, of which `used_bytes` are values.
struct HostMatrix {
  const std::byte* first = nullptr;  // null: the columns are not a matrix, or mostly other values
  std::size_t row_bytes = 0, used_bytes = 0;
};
HostMatrix find_matrix(const Columns& table);

// Replaces a column by one of the host.
void put(DeviceColumns& table, std::size_t index, const Column& column, Team& team);

// The same as of a table of the host (table/columns.h).
std::vector<std::size_t> inexact_columns(const DeviceColumns& table);

constexpr unsigned block_threads = 256;

// Blocks of a launch over n items in which threads take several.
inline std::size_t blocks_of(const Device& device, std::size_t n) {
  const auto most = static_cast<std::size_t>(device.multiprocessors()) * 16;
  return std::clamp<std::size_t>(in_blocks(n, block_threads), 1, most);
}

// Waits for the queue, and copies an array back.
template <class T>
std::vector<T> receive(const DeviceArray<T>& from, Queue& queue) {
  std::vector<T> to(from.size());
  queue.download(from, from.size(), to.data());
  queue.wait();
  return to;
}

// Rows of a fit on a device: all of the table, or a copy of their index.
class DeviceRowIndex {
 public:
  DeviceRowIndex(const Device& device, const Rows& rows, Team* team) : n_(rows.size()) {
    if (!rows.is_all()) index_ = uploaded(device, rows.index(), n_, team);
  }
  TableRows rows() const { return {index_.data(), n_}; }

 private:
  std::uint64_t n_;
  DeviceArray<RowId> index_;
};

}  // namespace arboost::cuda
