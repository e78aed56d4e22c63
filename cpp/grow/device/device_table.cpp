// One copy of each array.
#include "grow/device/device_table.h"

#include <map>
#include <mutex>
#include <utility>

#include "tree/rule.h"

namespace arboost::cuda {
namespace {

template <class T>
const T* upload(const T* from, std::size_t n, DeviceArray<T>& to, Queue& queue) {
  to = DeviceArray<T>(n);
  queue.upload(from, n, to);
  return to.data();
}

}  // namespace

DeviceTable::DeviceTable(Device& device, const Codes& codes, Queue& queue) {
  const SparseCodes& sparse = codes.sparse;
  codes_ = {.by_row = upload(codes.by_row.data(), codes.by_row.size(), by_row_, queue),
            .by_column = nullptr,
            .n_rows = codes.n_rows,
            .n_stores = static_cast<std::uint32_t>(codes.n_stores),
            .row_stride = static_cast<std::uint32_t>(codes.row_stride),
            .width = static_cast<std::uint32_t>(codes.width),
            .sparse_start = nullptr,
            .sparse_rows = nullptr,
            .sparse_codes = nullptr,
            .row_start = nullptr,
            .row_slots = nullptr,
            .slot_width = 0,
            .first_sparse = 0};
  if (codes.n_stores > 0) {  // a transpose costs less than a second copy from the host
    by_column_ = DeviceArray<std::uint8_t>(codes.by_column.size());
    codes_.by_column = by_column_.data();
    constexpr std::size_t tile = 64;
    queue.launch(device.kernel(codes.width == 1 ? "transpose_bytes" : "transpose_words"),
                 {(codes.n_rows + tile - 1) / tile, (codes.n_stores + tile - 1) / tile}, 256, 0,
                 codes_, by_column_.data());
  }
  if (sparse.size() > 0) {
    codes_.sparse_start = upload(sparse.start.data(), sparse.start.size(), sparse_start_, queue);
    codes_.sparse_rows = upload(sparse.rows.data(), sparse.rows.size(), sparse_rows_, queue);
    codes_.sparse_codes = upload(sparse.codes.data(), sparse.codes.size(), sparse_codes_, queue);
    codes_.row_start = upload(sparse.row_start.data(), sparse.row_start.size(), row_start_, queue);
    codes_.row_slots = upload(sparse.slots.data(), sparse.slots.size(), row_slots_, queue);
    codes_.slot_width = static_cast<std::uint32_t>(sparse.slot_width);
  }
  queue.wait();  // copies read the host's memory
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
  const SparseCodes& sparse = codes.sparse;
  return codes.by_row.size() + codes.by_column.size() +
         sparse.n_stored() * (sizeof(RowId) + static_cast<std::size_t>(codes.width) +
                              static_cast<std::size_t>(sparse.slot_width)) +
         sparse.row_start.size() * sizeof(std::uint64_t);
}

NodeTest test_of(const Codes& codes, std::size_t feature, const FeatureRule& split) {
  const Place& place = codes.where[feature];
  return {.rule = rule_of(codes, feature, split),
          .store = place.store,
          .usual = place.usual,
          .sparse = place.storage == Storage::sparse ? 1u : 0u,
          .left = 0};
}

}  // namespace arboost::cuda
