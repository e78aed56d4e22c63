// Values to encode on a device: where they are, or sent there from the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/parallel.h"
#include "bin/device/device_columns.h"
#include "bin/device/device_work.h"
#include "cuda/staging.h"

namespace arboost::cuda {

// Launches the encoding of some rows, with columns where `features` says.
using Launch = FunctionRef<void(const EncodeWork& work, Queue& queue)>;

// Values that are on the device.
class DeviceSource {
 public:
  DeviceSource(const Device& device, const DeviceColumns& table, const Rows& rows, Team&)
      : table_(table), index_(device, rows) {}

  template <class Number>
  void run(std::vector<CodedFeature> features, std::span<const std::size_t> numbers,
           const Launch& launch) {
    for (std::size_t k = 0; k < features.size(); ++k)
      features[k].column = table_.columns[numbers[k]];
    const DeviceArray<CodedFeature> sent = send(features, queue_);
    launch({.features = sent.data(), .rows = index_.rows(), .by_row = table_.by_row()}, queue_);
    queue_.wait();
  }

 private:
  const DeviceColumns& table_;
  Queue queue_;
  DeviceRowIndex index_;
};

// Values that are in the memory of the host, sent column by column in chunks of rows.
class HostSource {
 public:
  HostSource(const Device& device, const Columns& table, const Rows& rows, Team& team)
      : device_(device), table_(table), rows_(rows), team_(team) {}

  template <class Number>
  void run(std::vector<CodedFeature> features, std::span<const std::size_t> numbers,
           const Launch& launch) {
    const std::size_t fit = staged_bytes / (features.size() * sizeof(Number));
    const std::size_t chunk_rows = std::min(fit / block_rows * block_rows, padded(rows_.size()));
    if (chunk_rows == 0) throw std::invalid_argument("too many columns to encode on a device");
    DeviceArray<Number> room[2];
    DeviceArray<CodedFeature> sent[2];
    Queue queue;
    for (int side = 0; side < 2; ++side) {
      room[side] = DeviceArray<Number>(chunk_rows * features.size());
      for (std::size_t k = 0; k < features.size(); ++k)
        features[k].column = {
            reinterpret_cast<const std::uint8_t*>(room[side].data() + k * chunk_rows),
            sizeof(Number), std::numeric_limits<double>::quiet_NaN(),
            sizeof(Number) == 4 ? Type::float32 : Type::float64};
      sent[side] = send(features, queue);
      queue.wait();
    }
    const auto n_of = [&](std::size_t chunk) {
      return std::min(chunk_rows, rows_.size() - chunk * chunk_rows);
    };
    send_chunks(
        device_, (rows_.size() + chunk_rows - 1) / chunk_rows,
        {room[0].address(), room[1].address()},
        [&](std::size_t chunk, std::byte* buffer) {
          read(numbers, chunk * chunk_rows, n_of(chunk), chunk_rows,
               reinterpret_cast<Number*>(buffer));
          return chunk_rows * features.size() * sizeof(Number);
        },
        [&](std::size_t chunk, int side, Queue& own) {
          launch({.features = sent[side].data(),
                  .rows = {nullptr, n_of(chunk)},
                  .first_row = chunk * chunk_rows},
                 own);
        });
  }

 private:
  static std::size_t padded(std::size_t n) {
    return (n + block_rows - 1) / block_rows * block_rows;
  }

  template <class Number>
  void read(std::span<const std::size_t> numbers, std::size_t first, std::size_t n,
            std::size_t chunk_rows, Number* to) {
    constexpr std::size_t grain = 8 * block_rows;
    team_.for_chunks(0, n, grain, [&](std::size_t begin, std::size_t end, int) {
      double block[block_rows];
      for (; begin < end; begin += block_rows) {
        const std::size_t last = std::min(begin + block_rows, end);
        for (std::size_t k = 0; k < numbers.size(); ++k) {
          rows_.read(table_.columns[numbers[k]], first + begin, first + last, block);
          std::copy(block, block + (last - begin), to + k * chunk_rows + begin);
        }
      }
    });
  }

  const Device& device_;
  const Columns& table_;
  const Rows& rows_;
  Team& team_;
};

}  // namespace arboost::cuda
