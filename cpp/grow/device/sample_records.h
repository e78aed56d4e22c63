// Records of samples that are drawn on a device.
#pragma once

#include <cstdint>

#include "grow/kernels/draw_row.h"

namespace arboost::cuda {

// Where drawn rows go.
struct DrawnRows {
  std::uint32_t* positions;
  float* weights;  // null: all 1
  std::uint32_t n_rows;
};

}  // namespace arboost::cuda
