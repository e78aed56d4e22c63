// Rows to predict on a device: a table of the host, or one in device memory.
#pragma once

#include <cstddef>

#include "bin/device/device_columns.h"
#include "table/columns.h"

namespace arboost::cuda {

struct TableSource {
  const Columns* host = nullptr;
  const DeviceColumns* device = nullptr;
  std::size_t n_rows = 0;
  // Where a table of the host has all values of one type in C order: the first, and bytes a row.
  const std::byte* matrix = nullptr;
  std::size_t row_bytes = 0;
};

TableSource device_source(const DeviceColumns& columns);

// Tables of one type in C order are sent as they are, unless doubles of the columns that are used
// are fewer bytes; all others column by column.
TableSource host_source(const Columns& columns, std::size_t n_used);

}  // namespace arboost::cuda
