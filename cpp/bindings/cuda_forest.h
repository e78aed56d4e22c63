// A forest on a CUDA device, and the tables that it reads there.
#pragma once

#include <cstddef>

#include "bindings/common.h"
#include "bindings/forest_arrays.h"
#include "bindings/kept_forest.h"  // Scores, Leaves
#include "predict/device/device_forest.h"

namespace arboost::bindings {

struct CudaTable {
  cuda::TableRows rows;
  std::size_t n_rows, n_columns;
};

struct KeptCudaForest {
  KeptCudaForest(nb::handle forest, std::size_t n_columns, std::size_t n_outputs, int device)
      : made(device, ForestArrays(forest).views(), n_columns, n_outputs) {}

  void set_levels(std::size_t feature, const Vector<double>& levels,
                  const Vector<double>& numbers) {
    made.set_levels(feature, {levels.data(), levels.size()}, {numbers.data(), numbers.size()});
  }

  cuda::RowSource source(const Columns& columns) const {
    require(columns.columns.size() == made.n_columns(),
            "the table has another number of columns than the forest");
    return {.host = &columns, .device = {}, .n_rows = columns.n_rows};
  }
  cuda::RowSource source(const CudaTable& table) const {
    require(table.n_columns == made.n_columns(),
            "the table has another number of columns than the forest");
    return {.host = nullptr, .device = table.rows, .n_rows = table.n_rows};
  }

  cuda::DeviceForest made;
};

}  // namespace arboost::bindings
