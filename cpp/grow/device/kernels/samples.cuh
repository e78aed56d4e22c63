// Drawn rows -> their positions and weights, together.
#pragma once

#include "grow/device/kernels/rows.cuh"
#include "grow/device/records/sample_records.h"

// Writes the drawn rows and their weights. Totals: their number; bits of the largest weight.
template <class Draw>
inline void collect_rows(const DrawnRows& out, Draw draw, const GivenTotals& totals) {
  __shared__ std::uint32_t before[33];  // kept rows in the warps before each one of the block
  __shared__ unsigned long long first;  // position of the block's first row
  auto* size = reinterpret_cast<unsigned long long*>(totals.sums);
  std::uint32_t largest = 0;
  for (std::uint64_t begin = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x;
       begin < out.n_rows; begin += static_cast<std::uint64_t>(gridDim.x) * blockDim.x) {
    const auto row = static_cast<std::uint32_t>(begin + threadIdx.x);
    const DrawnRow drawn =
        begin + threadIdx.x < out.n_rows ? draw(out.first + row) : DrawnRow{0, 0};
    const std::uint32_t lanes = __ballot_sync(all_lanes, drawn.kept != 0);
    if (lane_of() == 0) before[warp_of() + 1] = __popc(lanes);
    __syncthreads();
    if (threadIdx.x == 0) {
      before[0] = 0;
      for (std::uint32_t w = 0; w < blockDim.x / 32; ++w) before[w + 1] += before[w];
      first = atomicAdd(size, static_cast<unsigned long long>(before[blockDim.x / 32]));
    }
    __syncthreads();
    if (drawn.kept) {
      const std::uint64_t at = first + before[warp_of()] + __popc(lanes & ((1u << lane_of()) - 1));
      out.positions[at] = row;
      if (out.weights != nullptr) out.weights[at] = drawn.weight;
      largest = max(largest, __float_as_uint(drawn.weight));
    }
    __syncthreads();
  }
  for (int step = 16; step > 0; step >>= 1)
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, step));
  if (lane_of() == 0) atomicMax(size + 1, static_cast<unsigned long long>(largest));
  give_totals(totals);
}
