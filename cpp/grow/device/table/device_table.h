// A binned table in the memory of a device.
#pragma once

#include <memory>

#include "bin/device/device_bins.h"
#include "cuda/device.h"
#include "grow/device/records/device_records.h"
#include "table/codes.h"
#include "tree/rule.h"

namespace arboost::cuda {

class DeviceTable {
 public:
  // Copies the codes, unless they are on the device already; the device must be current.
  DeviceTable(Device& device, const Codes& codes, Queue& queue);
  // Room for codes that kernels make, of a table without sparse columns.
  DeviceTable(const Codes& codes, Queue& queue);

  const DeviceCodes& codes() const { return codes_; }
  std::uint8_t* room_by_row() { return by_row_.data(); }
  // Makes the column-major codes from the row-major ones.
  void transpose(Device& device, Queue& queue);

 private:
  std::shared_ptr<const CodesOnDevice> there_;  // null: the codes are copied here
  DeviceArray<std::uint8_t> by_row_, by_column_, sparse_codes_, row_slots_;
  DeviceArray<std::uint64_t> sparse_start_, row_start_;
  DeviceArray<RowId> sparse_rows_;
  DeviceCodes codes_{};
};

// The table of codes on a device: the same one for all growers that have it at once.
std::shared_ptr<const DeviceTable> table_on(Device& device, const Codes& codes, Queue& queue);

// Bytes that a table needs on a device: 0 where it is there already.
std::size_t bytes_of(const Codes& codes);
// The same for codes that kernels make.
inline std::size_t buffer_bytes(const Codes& codes) {
  return codes.bytes_by_row() + codes.bytes_by_column();
}

// The test of a feature's split, as kernels take it.
NodeTest test_of(const Codes& codes, std::size_t feature, const FeatureRule& split);

}  // namespace arboost::cuda
