// Hessians of a round -> their sums by code; bins proposed from these -> the codes to grow on.
#include "grow/device/kernels/rows.cuh"

// hessians[i] = those of training row i, summed over the outputs.
extern "C" __global__ void row_hessians(PairRows rows, std::uint32_t shift,
                                        std::uint32_t* hessians) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows.n) return;
  std::int64_t h = 0;
  for (std::uint32_t k = 0; k < rows.outputs; ++k)
    h += rows.pairs[i * rows.row_stride + k * rows.output_stride].h;
  hessians[i] = static_cast<std::uint32_t>(h >> shift);
}

// sums[code] += hessian of each training row, for a feature in each blockIdx.y.
extern "C" __global__ void sum_hessians(DeviceCodes codes, RowNumbers rows, std::uint32_t n,
                                        const std::uint32_t* hessians,
                                        const ProposedColumn* columns, std::int64_t* sums) {
  const ProposedColumn column = columns[blockIdx.y];
  const NodeTest position{.rule = {}, .store = column.store, .usual = 0, .sparse = 0, .left = 0};
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    add_to(sums + column.first + code_at(codes, position, row_at(rows, i), false), hessians[i]);
}

// The bin of each code; a cell is a row and a feature.
extern "C" __global__ void propose_codes(DeviceCodes codes, const ProposedColumn* columns,
                                         std::uint32_t n_features, const std::uint16_t* bins,
                                         DeviceCodes proposed, std::uint8_t* by_row) {
  const std::uint64_t n_cells = codes.n_rows * n_features;
  for (std::uint64_t cell = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; cell < n_cells;
       cell += std::uint64_t{gridDim.x} * blockDim.x) {
    const auto feature = static_cast<std::uint32_t>(cell % n_features);
    const std::uint64_t row = cell / n_features;
    const ProposedColumn column = columns[feature];
    const NodeTest position{.rule = {}, .store = column.store, .usual = 0, .sparse = 0, .left = 0};
    const std::uint16_t bin =
        bins[column.first + code_at(codes, position, static_cast<RowId>(row), true)];
    std::uint8_t* out = by_row + row * proposed.row_stride;
    if (proposed.width == 1)
      out[feature] = static_cast<std::uint8_t>(bin);
    else
      reinterpret_cast<std::uint16_t*>(out)[feature] = bin;
  }
}
