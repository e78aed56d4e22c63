// A table of numbers in the memory of a device: views of the user's arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/device/bin_records.h"
#include "cuda/device.h"
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

// Replaces a column by one of the host.
void put(DeviceColumns& table, std::size_t index, const Column& column, Team& team);

// The same as of a table of the host (table/columns.h).
std::vector<std::size_t> inexact_columns(const DeviceColumns& table);

}  // namespace arboost::cuda
