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

// Draws with replacement: random places of an interval.
struct BootstrapDraws {
  std::uint64_t seed, sample, n, length;
  const std::uint64_t* ends;  // of the rows' stretches; null: a place each
  std::uint32_t n_rows;
};

}  // namespace arboost::cuda
