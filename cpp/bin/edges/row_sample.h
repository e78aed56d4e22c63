// Rows sampled by a hash of their position: the same ones for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "base/random.h"

namespace arboost {

// Positions below n whose hash is below the threshold, ascending.
inline std::vector<std::uint32_t> sample_places(std::size_t n, Purpose purpose,
                                                std::uint64_t threshold, Team& team) {
  constexpr std::size_t grain = 1 << 16;
  std::vector<std::vector<std::uint32_t>> parts((n + grain - 1) / grain);
  team.for_chunks(0, n, grain, [&](std::size_t begin, std::size_t end, int) {
    auto& part = parts[begin / grain];
    for (std::size_t i = begin; i < end; ++i)
      if (counter_hash(0, purpose, 0, i) < threshold) part.push_back(static_cast<std::uint32_t>(i));
  });
  std::vector<std::uint32_t> places;
  for (const auto& part : parts) places.insert(places.end(), part.begin(), part.end());
  return places;
}

}  // namespace arboost
