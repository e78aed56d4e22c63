// Memory of a fit on a device.
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
#include "grow/device/records/quantile_records.h"
#include "grow/device/rounds/device_rounds.h"
#include "grow/device/table/device_table.h"

namespace arboost::cuda {

constexpr unsigned threads = 256;  // of most blocks

inline std::size_t blocks_for(std::size_t n, std::size_t size = threads) {
  return std::max<std::size_t>(1, (n + size - 1) / size);
}

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
  DeviceArray<RowId> table_rows;
  DeviceArray<std::uint32_t> position_of_row;  // for purity
  DeviceArray<std::uint32_t> positions;
  DeviceArray<std::uint32_t> draw_counts;
  DeviceArray<std::uint32_t> hessians;  // of the training rows, for a proposal
  DeviceArray<std::int64_t> hessian_sums;
  DeviceArray<ProposedColumn> proposed_columns;
  DeviceArray<std::uint16_t> proposed_bins;
  DeviceArray<float> weights, norms;
  DeviceArray<FixedPair> all_pairs, sample_pairs;
  std::uint64_t pairs_version = 0;  // Gradients::version of all_pairs
  DeviceArray<Element> elements[2];
  DeviceArray<PackedSum> wide;
  DeviceArray<std::uint32_t> number_of_row, leaf_of_row;
  Totals sample_sums, root_sums, leaf_sums;
  DeviceArray<double> values;
  DeviceArray<NodeTest> tests;
  DeviceArray<WalkNode> tree;

  DeviceArray<std::uint32_t> first_slot;
  DeviceArray<FeatureColumn> columns;
  DeviceArray<GroupColumn> groups;                    // of grouped categories
  DeviceArray<std::uint8_t> own_codes;                // of features that share stored columns
  std::vector<DeviceArray<std::int64_t>> histograms;  // a block of several each
  std::vector<std::int64_t*> free;
  std::size_t in_use = 0;

  DeviceArray<std::byte> batch;
  DeviceArray<Segment> segments;
  DeviceArray<FoundSplit> splits;
  DeviceArray<std::int64_t> parts;
  DeviceArray<RowRange> ranges;
  DeviceArray<std::uint32_t> pure;
  DeviceArray<ResidualItem> residuals;
  DeviceArray<LeafQuantile> quantiles;
  DeviceArray<std::int64_t> digit_counts;
  DeviceArray<unsigned long long> bad_residual;
  std::unique_ptr<DeviceRounds> rounds;
  PinnedBytes sent, sent_batches[2], answers, received;
  int which_batch = 0;  // of those that are staged
  std::size_t sent_size = 0, n_sent = 0;

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
