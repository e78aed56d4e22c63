// Arrays, row indices and launches of the kernels of binning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "bin/device/bin_records.h"
#include "cuda/device.h"
#include "cuda/staging.h"
#include "table/columns.h"

namespace arboost::cuda {

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
