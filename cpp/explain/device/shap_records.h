// SHAP programs as kernels see them: the steps of explain/shap/shap_run.h, in pages that fit shared
// memory. A page has steps of one tree.
#pragma once

#include <cstdint>

namespace arboost::cuda {

struct alignas(16) DeviceShapStep {
  std::uint32_t edge, leaves;  // where their numbers begin in the page, or no_page_numbers
  std::uint32_t test;          // number or set of the split
  std::uint32_t column;        // of the split's code and result; leaving: of the one above
  std::uint32_t flags;
  std::uint16_t depth, above;
  std::uint32_t unused[2];
};
constexpr std::uint32_t no_page_numbers = ~std::uint32_t{0};

// Flags of a step, by the names of explain/shap/shap_run.h; `shift` and `by_set` are those of nodes
// (predict/device/walk_records.h).
struct ShapFlags {
  enum : std::uint32_t {
    is_end = 1,
    is_left = 2,
    again = 4,
    above_left = 8,
    again_above = 16,
    adds = 32,
    shift = 64,
    by_set = 128,
  };
};

struct DeviceShapPage {
  std::uint64_t first_step, first_number;  // numbers begin at multiples of 16 bytes
  std::uint32_t n_steps, n_numbers;
  std::uint32_t points;
  std::uint32_t is_start;  // of a tree
};
constexpr std::uint32_t page_steps = 192, page_numbers = 2048;

struct ShapPages {
  const DeviceShapPage* pages;
  const DeviceShapStep* steps;
  const double* numbers;
  const std::uint32_t* page_start;  // [output + 1]
  const std::uint32_t* features;    // of the columns
  std::uint32_t n_columns;
  std::uint32_t stack;  // numbers of a row's products, and of its sums
};

// values[row][feature][output]
struct ShapResults {
  double* values;
  const double* divisors;  // of the outputs
  std::uint32_t n_features, n_outputs;
};

constexpr std::uint32_t shap_threads = 64;
constexpr std::uint32_t most_shap_depth = 63;  // masks of a row are words

}  // namespace arboost::cuda
