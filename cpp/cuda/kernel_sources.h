// Sources of the kernels, for the run-time compiler. The build embeds them (CMakeLists.txt).
#pragma once

#include <span>

#include "cuda/driver.h"

namespace arboost::cuda {

// Kernels that are compiled together. The programs of a group are compiled at once, in threads,
// when the first of their kernels is asked for.
struct KernelProgram {
  const char* name;
  const char* group;
  const char* source;
  std::span<const char* const> kernels;
};
std::span<const KernelProgram> kernel_programs();

// All headers that kernels include, by the names that they include them by.
std::span<const Header> kernel_headers();

}  // namespace arboost::cuda
