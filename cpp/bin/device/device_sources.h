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
  DeviceSource(const Device& device, const DeviceColumns& table, const Rows& rows, Team& team)
      : table_(table), index_(device, rows, &team) {}

  template <class Number>
  void run(std::vector<CodedFeature> features, std::span<const std::size_t> numbers,
           const Launch& launch) {
    for (std::size_t k = 0; k < features.size(); ++k)
      features[k].column = table_.columns[numbers[k]];
    const DeviceArray<CodedFeature> sent = queue_.send(features);
    launch({.features = sent.data(), .rows = index_.rows(), .by_row = table_.by_row()}, queue_);
    queue_.wait();
  }

 private:
  const DeviceColumns& table_;
  Queue queue_;
  DeviceRowIndex index_;
};

// Values that are in the memory of the host, sent in chunks of rows: whole rows where the table is
// a matrix in row-major order, else column by column, as floating-point numbers.
class HostSource {
 public:
  HostSource(const Device& device, const Columns& table, const Rows& rows, Team& team)
      : device_(device), table_(table), rows_(rows), team_(team), matrix_(find_matrix()) {}

  template <class Number>
  void run(std::vector<CodedFeature> features, std::span<const std::size_t> numbers,
           const Launch& launch) {
    const std::size_t row_bytes =
        matrix_.first != nullptr ? matrix_.row_bytes : features.size() * sizeof(Number);
    const std::size_t chunk_rows =
        std::min(staged_bytes / row_bytes / block_rows * block_rows, padded(rows_.size()));
    if (chunk_rows == 0) throw std::invalid_argument("too many columns to encode on a device");
    DeviceArray<std::uint8_t> staged[2];
    DeviceArray<CodedFeature> sent[2];
    Queue queue;
    for (int side = 0; side < 2; ++side) {
      staged[side] = DeviceArray<std::uint8_t>(chunk_rows * row_bytes);
      for (std::size_t k = 0; k < features.size(); ++k)
        features[k].column =
            matrix_.first != nullptr
                ? in_matrix(table_.columns[numbers[k]], staged[side].data())
                : column_at<Number>(staged[side].data() + k * chunk_rows * sizeof(Number));
      sent[side] = queue.send(features);
      queue.wait();
    }
    const auto n_of = [&](std::size_t chunk) {
      return std::min(chunk_rows, rows_.size() - chunk * chunk_rows);
    };
    const auto fill = [&](std::size_t chunk, std::byte* buffer) {
      const std::size_t first = chunk * chunk_rows, n = n_of(chunk);
      if (matrix_.first == nullptr) {
        read(numbers, first, n, chunk_rows, reinterpret_cast<Number*>(buffer));
        return chunk_rows * row_bytes;
      }
      const std::size_t bytes = (n - 1) * row_bytes + matrix_.used_bytes;
      copy_by_threads(matrix_.first + first * row_bytes, bytes, buffer, team_);
      return bytes;
    };
    const auto use = [&](std::size_t chunk, int side, Queue& sending) {
      launch({.features = sent[side].data(),
              .rows = {nullptr, n_of(chunk)},
              .first_row = chunk * chunk_rows,
              .by_row = matrix_.first != nullptr},
             sending);
    };
    send_chunks(device_, (rows_.size() + chunk_rows - 1) / chunk_rows,
                {staged[0].address(), staged[1].address()}, fill, use);
  }

 private:
  // Rows of a matrix, one after the other.
  struct Matrix {
    const std::byte* first = nullptr;  // null: the columns are not a matrix
    std::size_t row_bytes = 0, used_bytes = 0;
  };

  static std::size_t padded(std::size_t n) {
    return (n + block_rows - 1) / block_rows * block_rows;
  }

  Matrix find_matrix() const {
    if (!rows_.is_all() || table_.columns.empty()) return {};
    const std::ptrdiff_t stride = table_.columns[0].stride;
    const std::byte *first = nullptr, *end = nullptr;
    for (const Column& column : table_.columns) {
      const std::size_t size = item_size(column.type);
      if (size == 0 || column.stride != stride || column.pieces.size() != 1) return {};
      const Piece& piece = column.pieces[0];
      if (piece.mask != nullptr || piece.valid != nullptr) return {};
      if (first == nullptr || piece.values < first) first = piece.values;
      if (end == nullptr || piece.values + size > end) end = piece.values + size;
    }
    const std::ptrdiff_t used = end - first;
    if (used > stride || 2 * used < stride) return {};  // no rows, or mostly other values
    for (const Column& column : table_.columns) {
      const auto size = static_cast<std::ptrdiff_t>(item_size(column.type));
      if ((column.pieces[0].values - first) % size != 0 || stride % size != 0) return {};
    }
    return {first, static_cast<std::size_t>(stride), static_cast<std::size_t>(used)};
  }

  DeviceColumn in_matrix(const Column& column, const std::uint8_t* staged) const {
    return {staged + (column.pieces[0].values - matrix_.first), column.stride, column.missing,
            column.type};
  }

  template <class Number>
  static DeviceColumn column_at(const std::uint8_t* values) {
    return {values, sizeof(Number), std::numeric_limits<double>::quiet_NaN(),
            sizeof(Number) == 4 ? Type::float32 : Type::float64};
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
  const Matrix matrix_;
};

}  // namespace arboost::cuda
