// Order of the sums of losses, on every machine: blocks of rows, each added in eight lanes; then
// the blocks of a chunk, and the chunks.
#pragma once

#include <cstddef>

namespace arboost {

constexpr std::size_t value_block = 256;   // rows; a multiple of 8
constexpr std::size_t value_chunk = 8192;  // rows; a multiple of the block

// In an unnamed namespace: each instruction set's variant keeps a copy of its own.
namespace {

inline double sum_of_lanes(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace
}  // namespace arboost
