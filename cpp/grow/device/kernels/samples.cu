// Samples of rows without replacement: the draws of grow/kernels/draw_row.h. The order of a
// sample's rows does not matter.
#include "grow/device/kernels/samples.cuh"

inline float norm_at(const NormArgs& args, std::uint64_t row) {
  float norm = 0;
  for (std::size_t k = 0; k < args.outputs; ++k)
    norm += square_of(args, args.pairs[row * args.row_stride + k * args.output_stride]);
  return args.squared ? norm : sqrtf(norm);
}

// norms[k] = the norm of row k * step
extern "C" __global__ void norms_of_rows(NormArgs args, std::uint64_t step, std::uint32_t n,
                                         float* norms) {
  const std::uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) norms[k] = norm_at(args, k * step);
}

extern "C" __global__ void draw_uniform(DrawArgs args, DrawnRows out, GivenTotals totals) {
  collect_rows(out, [&](std::uint32_t row) { return draw_row(args, row); }, totals);
}

extern "C" __global__ void draw_by_gradient(DrawArgs args, DrawnRows out, GivenTotals totals) {
  collect_rows(
      out, [&](std::uint32_t row) { return draw_row(args, row, norm_at(args.norms, row)); },
      totals);
}

extern "C" __global__ void draw_one_side(TopArgs args, DrawnRows out, GivenTotals totals) {
  collect_rows(
      out, [&](std::uint32_t row) { return draw_row(args, row, norm_at(args.norms, row)); },
      totals);
}
