// Rows to predict on a device: a table of the host, or one in device memory.
#pragma once

#include <cstddef>

#include "predict/device/walk_records.h"
#include "table/columns.h"

namespace arboost::cuda {

struct TableSource {
  const Columns* host = nullptr;
  // The table in device memory; of the host, where its rows are one after the other.
  ValueRows rows{};
  std::size_t n_rows = 0;
  std::size_t row_bytes = 0;  // of such a table of the host, else 0
};

TableSource device_source(const ValueRows& rows, std::size_t n_rows);

// Tables of the host of one type, in C order, are sent as they are, unless so many doubles a row
// are fewer bytes; all others column by column.
TableSource host_source(const Columns& columns, std::size_t n_used);

}  // namespace arboost::cuda
