// Records of evaluation on a device.
#pragma once

#include <cstdint>

namespace arboost::cuda {

// A tree that is added: its factor, its first node among those of all, and the first output it adds
// to.
struct RoundTree {
  double factor;
  std::uint32_t first, output;
};

}  // namespace arboost::cuda
