// Records of evaluation on a device.
#pragma once

#include <cstdint>

namespace arboost::cuda {

// A tree of a round: its first node among those of the round, and the first output it adds to.
struct RoundTree {
  std::uint32_t first, output;
};

}  // namespace arboost::cuda
