// A forest on a CUDA device.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "bindings/common.h"
#include "bindings/forest_arrays.h"
#include "bindings/kept_forest.h"  // Scores, Leaves
#include "explain/device/device_shap.h"
#include "predict/device/device_forest.h"

namespace arboost::bindings {

struct KeptCudaForest {
  KeptCudaForest(nb::handle forest, std::size_t n_columns, std::size_t n_outputs, int device)
      : made(device, ForestArrays(forest).views(), n_columns, n_outputs) {}

  cuda::TableSource source(const Columns& columns) const {
    require(columns.columns.size() == made.n_columns(),
            "the table has another number of columns than the forest");
    return cuda::host_source(columns, made.trees().columns.size());
  }
  cuda::TableSource source(const cuda::DeviceColumns& columns) const {
    require(columns.columns.size() == made.n_columns(),
            "the table has another number of columns than the forest");
    require(&cuda::Device::number(columns.device) == &made.device(),
            "the table is on another device than the forest");
    return cuda::device_source(columns);
  }

  // SHAP programs, prepared by the first call from the same forest.
  const cuda::DeviceShap& shap(nb::handle forest, int n_threads) const {
    const ForestArrays arrays(forest);
    const auto cover = array_attribute<Vector<double>>(forest, "cover");
    require(cover.size() == arrays.left.size() && arrays.output.size() == made.n_trees(),
            "another forest than that on the device");
    GilRelease release;
    std::lock_guard lock(mutex);
    if (shap_programs == nullptr) {
      const ShapForest checked(arrays.views(), {cover.data(), cover.size()}, made.n_columns(),
                               made.n_outputs());
      Team team = team_for(128 * arrays.left.size(), n_threads);
      shap_programs = std::make_unique<cuda::DeviceShap>(made, checked, team);
    }
    return *shap_programs;
  }

  cuda::DeviceForest made;
  mutable std::mutex mutex;
  mutable std::unique_ptr<const cuda::DeviceShap> shap_programs;  // is destroyed first
};

}  // namespace arboost::bindings
