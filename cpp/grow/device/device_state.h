// Memory of a fit on a device that its parts share: the table, and the rows of a tree.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/device.h"
#include "cuda/staging.h"
#include "cuda/totals.h"
#include "grow/device/records/device_records.h"
#include "grow/device/records/mean_records.h"
#include "grow/device/table/device_table.h"
#include "grow/policy/tree_policy.h"

namespace arboost::cuda {

constexpr unsigned threads = 256;  // of most blocks

inline std::size_t blocks_for(std::size_t n, std::size_t size = threads) {
  return std::max<std::size_t>(1, in_blocks(n, size));
}

// The same as make_room, and more than is needed now.
template <class T>
void make_spare_room(DeviceArray<T>& array, std::size_t size) {
  if (array.size() < size) make_room(array, std::bit_ceil(size));
}

// A tree that grows from the quantised rows of a DeviceState.
struct DeviceTree {
  TreeRequest request;
  RowValues values;
  TargetPairs targets;  // for purity
};

struct DeviceState {
  // `codes` are grown on; splits of grown trees refer to `known`, of the same rows.
  DeviceState(Device& device_, const Codes& known, const Codes& codes)
      : device(device_),
        walked(table_on(device_, known, queue)),
        proposed(&known == &codes ? nullptr : std::make_shared<DeviceTable>(codes, queue)),
        table(proposed ? proposed : walked) {}

  Device& device;
  Queue queue;
  std::shared_ptr<const DeviceTable> walked;
  std::shared_ptr<DeviceTable> proposed;  // for each round; null: trees grow on the walked table
  std::shared_ptr<const DeviceTable> table;
  DeviceArray<RowId> table_rows;  // the training rows; empty: all
  // Rows of the tree: those of a sample, where it has one, or all training rows.
  DeviceArray<std::uint32_t> sample_positions;
  DeviceArray<float> sample_weights;
  RowNumbers rows{};
  std::uint32_t n_rows = 0;
  DeviceArray<std::uint32_t> number_of_row;
  bool has_numbers = false;  // in number_of_row, of the rows of this tree
  DeviceArray<Element> elements[2];
  DeviceArray<PackedSum> wide;
  // Of the quantised rows: sums of the outputs and, where leaves have a least size, the range of
  // the hessians (kernels/rows.cu).
  Totals root_sums;
  Totals sample_totals;
  DeviceArray<std::uint32_t> draw_counts;

  PinnedBytes sent, received;
  std::size_t sent_size = 0, n_sent = 0;

  // Blocks of a launch in which threads take several items.
  std::size_t few_blocks(std::size_t n) const {
    return std::min(8 * static_cast<std::size_t>(device.multiprocessors()), blocks_for(n));
  }
  bool is_sample() const { return rows.positions != nullptr; }
  void use_rows(const RowNumbers& tree_rows, std::size_t n) {
    rows = tree_rows;
    n_rows = static_cast<std::uint32_t>(n);
    has_numbers = false;
  }
  // The tree's rows by row of the table, or no_number; null: they are all rows of it.
  const std::uint32_t* numbers() {
    if (!is_sample() && rows.table_rows == nullptr) return nullptr;
    if (!has_numbers) {
      make_room(number_of_row, walked->codes().n_rows);
      queue.fill_ones(number_of_row.address(), number_of_row.size() * sizeof(std::uint32_t));
      queue.launch(device.kernel("number_rows"), {blocks_for(n_rows)}, threads, 0, rows, n_rows,
                   number_of_row.data());
      has_numbers = true;
    }
    return number_of_row.data();
  }
  // All training rows.
  RowNumbers all_rows() const { return {nullptr, table_rows.data()}; }
  // Sums of the root by channel: those beyond the outputs count rows.
  std::vector<std::int64_t> root_of(std::size_t outputs, std::size_t channels) {
    std::vector<std::int64_t> sums = root_sums.wait(queue);
    sums.resize(outputs);
    sums.resize(channels, n_rows);
    return sums;
  }

  // Sends an array of records to the device. Copies read the staged bytes until the next wait.
  template <class T>
  void send(const std::vector<T>& from, DeviceArray<T>& to) {
    make_room(to, from.size());
    const std::size_t bytes = from.size() * sizeof(T);
    if (n_sent + bytes > sent_size) {
      queue.wait();
      constexpr std::size_t least = std::size_t{1} << 20;
      sent_size = std::max({sent_size, least, std::bit_ceil(4 * bytes)});
      sent.buffer(sent_size);
      n_sent = 0;
    }
    std::byte* staged = sent.buffer(sent_size) + n_sent;
    n_sent += (bytes + 15) / 16 * 16;
    std::memcpy(staged, from.data(), bytes);
    queue.copy_in(staged, bytes, to.address());
  }
  // Copies a long array of the host in place of one that work of the queue may read.
  template <class T>
  void replace(const T* from, std::size_t n, DeviceArray<T>& to) {
    queue.wait();
    make_room(to, n);
    upload_staged(device, from, n * sizeof(T), to.address());
  }
  template <class T>
  std::vector<T> receive(Address from, std::size_t n) {
    std::byte* staged = received.buffer(n * sizeof(T));
    queue.copy_out(from, n * sizeof(T), staged);
    queue.wait();
    n_sent = 0;
    std::vector<T> numbers(n);
    std::memcpy(numbers.data(), staged, n * sizeof(T));
    return numbers;
  }
};

}  // namespace arboost::cuda
