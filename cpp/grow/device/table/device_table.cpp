// One copy of each array, through pinned memory; none of codes that were made on the device.
#include "grow/device/table/device_table.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "cuda/staging.h"
#include "tree/rule.h"

namespace arboost::cuda {
namespace {

// The codes that binning has left on this device; null where they are in the host's memory.
std::shared_ptr<const CodesOnDevice> codes_on(const Device& device, const Codes& codes) {
  auto there = std::dynamic_pointer_cast<const CodesOnDevice>(codes.distant);
  if (there && &Device::number(there->device) != &device) {
    const std::string name = "\"cuda:" + std::to_string(there->device) + "\"";
    throw DeviceError("the table is in the memory of the device " + name +
                      ", but the fit runs on another one. Use device=" + name +
                      ", or copy the table.");
  }
  return there;
}

// Without sparse columns.
DeviceCodes full_columns(const Codes& codes, const std::uint8_t* by_row,
                         const std::uint8_t* by_column) {
  DeviceCodes columns{};
  columns.by_row = by_row;
  columns.by_column = by_column;
  columns.n_rows = codes.n_rows;
  columns.n_stores = static_cast<std::uint32_t>(codes.n_stores);
  columns.row_stride = static_cast<std::uint32_t>(codes.row_stride);
  columns.width = static_cast<std::uint32_t>(codes.width);
  return columns;
}

}  // namespace

DeviceTable::DeviceTable(const Codes& codes, Queue& queue)
    : by_row_(codes.bytes_by_row()), by_column_(codes.bytes_by_column()) {
  codes_ = full_columns(codes, by_row_.data(), by_column_.data());
  queue.fill_zero(by_row_.address(), by_row_.size());
}

DeviceTable::DeviceTable(Device& device, const Codes& codes, Queue& queue)
    : there_(codes_on(device, codes)) {
  const SparseCodes& sparse = codes.sparse;
  const auto upload = [&]<class T>(const T* from, std::size_t n, DeviceArray<T>& to) {
    to = uploaded(device, from, n);
    return to.data();
  };
  const std::uint8_t* by_row =
      there_ ? there_->by_row.data() : upload(codes.by_row.data(), codes.by_row.size(), by_row_);
  codes_ = full_columns(codes, by_row, there_ ? there_->by_column.data() : nullptr);
  if (codes.n_stores > 0 && !there_) {  // a transpose costs less than a second copy from the host
    by_column_ = DeviceArray<std::uint8_t>(codes.by_column.size());
    codes_.by_column = by_column_.data();
    transpose(device, queue);
  }
  if (sparse.size() > 0) {
    codes_.sparse_start = upload(sparse.start.data(), sparse.start.size(), sparse_start_);
    codes_.sparse_rows = upload(sparse.rows.data(), sparse.rows.size(), sparse_rows_);
    codes_.sparse_codes = upload(sparse.codes.data(), sparse.codes.size(), sparse_codes_);
    codes_.row_start = upload(sparse.row_start.data(), sparse.row_start.size(), row_start_);
    codes_.row_slots = upload(sparse.slots.data(), sparse.slots.size(), row_slots_);
    codes_.slot_width = static_cast<std::uint32_t>(sparse.slot_width);
  }
  queue.wait();
}

void DeviceTable::transpose(Device& device, Queue& queue) {
  constexpr std::size_t tile = 64;
  queue.launch(device.kernel(codes_.width == 1 ? "transpose_bytes" : "transpose_words"),
               {in_blocks(codes_.n_rows, tile), in_blocks(codes_.n_stores, tile)}, 256, 0, codes_,
               by_column_.data());
}

std::shared_ptr<const DeviceTable> table_on(Device& device, const Codes& codes, Queue& queue) {
  static std::mutex mutex;
  static std::map<std::pair<const Device*, const Codes*>, std::weak_ptr<const DeviceTable>> tables;
  std::lock_guard lock(mutex);
  std::erase_if(tables, [](const auto& entry) { return entry.second.expired(); });
  auto& known = tables[{&device, &codes}];
  std::shared_ptr<const DeviceTable> table = known.lock();
  if (!table) known = table = std::make_shared<DeviceTable>(device, codes, queue);
  return table;
}

std::size_t bytes_of(const Codes& codes) {
  if (codes.distant) return 0;  // they are there already
  const SparseCodes& sparse = codes.sparse;
  return codes.by_row.size() + codes.by_column.size() +
         sparse.n_stored() * (sizeof(RowId) + static_cast<std::size_t>(codes.width) +
                              static_cast<std::size_t>(sparse.slot_width)) +
         sparse.row_start.size() * sizeof(std::uint64_t);
}

NodeTest test_of(const Codes& codes, std::size_t feature, const FeatureRule& split) {
  const FeatureStorage& storage = codes.where[feature];
  return {.rule = rule_of(codes, feature, split),
          .store = storage.store,
          .usual = storage.usual,
          .sparse = storage.kind == Storage::sparse ? 1u : 0u,
          .left = 0};
}

}  // namespace arboost::cuda
