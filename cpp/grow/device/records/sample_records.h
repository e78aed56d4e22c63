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
  std::uint32_t first;  // of these rows among those of all workers
};

// Draws with replacement, each row with the same probability.
struct BootstrapDraws {
  std::uint64_t seed, sample, n, n_rows;
};

}  // namespace arboost::cuda
