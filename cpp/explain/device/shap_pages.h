// Trees -> pages of steps and numbers for kernels of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "explain/device/shap_records.h"
#include "explain/shap/shap_program.h"
#include "predict/device/forest_layout.h"

namespace arboost::cuda {

struct HostShapPages {
  std::vector<DeviceShapPage> pages;
  std::vector<DeviceShapStep> steps;
  std::vector<double> numbers;
  std::vector<std::uint32_t> page_start;  // [output + 1]
  std::uint32_t stack = 0;                // products of a row in the largest tree
};

// Throws DeviceError where the trees are too deep, or need too many bytes.
HostShapPages shap_pages(const ForestLayout& trees, const ShapForest& forest,
                         std::size_t most_bytes, Team& team);

}  // namespace arboost::cuda
