// SHAP values on a CUDA device, the same bits as on the host (explain/shap/shap.h).
//
// The steps and numbers of all trees are prepared once, on the host, and stay on the device: about
// 250 bytes a split of boosters, more for each feature on a path of deep trees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/parallel.h"
#include "cuda/device.h"
#include "explain/device/shap_records.h"
#include "explain/shap/shap_program.h"
#include "predict/device/device_forest.h"

namespace arboost::cuda {

class DeviceShap {
 public:
  // `trees` is the same forest, and must live as long. Throws DeviceError where the trees are too
  // large.
  DeviceShap(const DeviceForest& trees, const ShapForest& forest, Team& team);
  ~DeviceShap();
  DeviceShap(const DeviceShap&) = delete;
  DeviceShap& operator=(const DeviceShap&) = delete;

  // double [row][feature][output]; divided by the divisors of the outputs.
  void values(const TableSource& rows, std::span<const double> divisors, Team& team,
              RowSink out) const;

 private:
  // Bytes of a block in shared memory, if its rows are there.
  std::size_t shared_bytes() const;
  // Bytes of a row and output in device memory, if rows are not in shared memory.
  std::size_t scratch_bytes() const {
    return (2 * stack_ + trees_.trees().columns.size()) * sizeof(double);
  }
  void launch(const DeviceForest::Chunk& chunk, const ShapResults& out) const;

  const DeviceForest& trees_;
  std::size_t n_features_, n_outputs_;
  std::uint32_t stack_ = 0;
  DeviceArray<DeviceShapPage> pages_;
  DeviceArray<DeviceShapStep> steps_;
  DeviceArray<double> numbers_;
  DeviceArray<std::uint32_t> page_start_, features_;
  DeviceArray<CodeSet> sets_;
};

}  // namespace arboost::cuda
