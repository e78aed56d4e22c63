// Memory of a tree during growth and until its values are added to the scores. Growers that take
// turns can share it, as the folds of one table do.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "base/types.h"
#include "grow/kernels/grow_kernels.h"

namespace arboost {

struct Workspace {
  Buffer<Element> elements[2];
  Buffer<std::uint32_t> leaf_of_row;
  Buffer<FixedPair> pairs;               // of a sample
  Buffer<PackedSum> wide;                // by row
  std::vector<Buffer<Element>> buffers;  // by member: elements of a stretch
  // By member: a byte for each row, all 0 between splits (grow/rows/row_partition.cpp).
  std::vector<Buffer<std::uint8_t>> marks;
  std::size_t histogram_size = 0;
  std::vector<Buffer<std::int64_t>> histograms;  // of this size
};

}  // namespace arboost
