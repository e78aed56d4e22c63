// Draws with replacement: the same as grow/sample/bootstrap.cpp, in any order.
#include "grow/device/kernels/samples.cuh"
#include "grow/sample/draw_place.h"

// counts[row] += draws of the row; they begin as 0.
extern "C" __global__ void count_draws(BootstrapDraws draws, std::uint32_t* counts) {
  const std::uint64_t j = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (j >= draws.n) return;
  const std::uint64_t place = draw_place(draws.seed, draws.sample, j, draws.length);
  std::uint64_t row = place;
  if (draws.ends != nullptr)
    row = last_from(draws.n_rows, place,
                    [&](std::uint32_t i) { return i == 0 ? 0 : draws.ends[i - 1]; });
  atomicAdd(counts + row, 1u);
}

extern "C" __global__ void collect_draws(const std::uint32_t* counts, DrawnRows out,
                                         GivenTotals totals) {
  const auto draw = [=](std::uint32_t row) {
    return DrawnRow{counts[row] > 0 ? 1u : 0u, static_cast<float>(counts[row])};
  };
  collect_rows(out, draw, totals);
}
