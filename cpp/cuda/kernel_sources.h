// Sources of the kernels, for the run-time compiler. The build embeds them (CMakeLists.txt).
#pragma once

#include <span>

#include "cuda/driver.h"

namespace arboost::cuda {

extern const char* const kernel_source;
// All headers that kernels include, by the names that they include them by.
std::span<const Header> kernel_headers();

}  // namespace arboost::cuda
