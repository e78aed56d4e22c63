// Values of a table -> words of codes.
#include "bin/device/kernels/values.cuh"
#include "predict/device/walk_records.h"

namespace arboost::cuda {

constexpr std::uint32_t staged_thresholds = 256;  // of a column, in shared memory

inline std::uint32_t code_of(const CodedColumn& column, const double* thresholds, double x) {
  if (column.kind == CodedColumn::thresholds)
    return 1 + count_below(column.n, x, [=](std::uint32_t i) { return thresholds[i]; });
  const bool known = x >= 0 && x < 255 && x == static_cast<double>(static_cast<int>(x));
  return known ? 1 + static_cast<std::uint32_t>(x) : 0;
}

}  // namespace arboost::cuda

using namespace arboost::cuda;

// A block takes the columns of one word, and a tile of rows.
extern "C" __global__ void __launch_bounds__(256)
    code_rows(CodedColumns coded, std::uint64_t n_rows, std::uint32_t* words) {
  __shared__ double staged[4 * staged_thresholds];
  __shared__ CodedColumn columns[4];
  const std::uint32_t first = blockIdx.x * coded.per_word;
  const std::uint32_t n = min(coded.per_word, coded.n_columns - first);
  if (threadIdx.x < n) columns[threadIdx.x] = coded.columns[first + threadIdx.x];
  __syncthreads();
  for (std::uint32_t c = 0; c < n; ++c) {
    if (columns[c].n > staged_thresholds) continue;
    for (std::uint32_t i = threadIdx.x; i < columns[c].n; i += blockDim.x)
      staged[c * staged_thresholds + i] = coded.thresholds[columns[c].first + i];
  }
  __syncthreads();
  const std::uint32_t bits = 32 / coded.per_word;
  const std::uint64_t begin = static_cast<std::uint64_t>(blockIdx.y) * code_tile;
  const std::uint64_t end = min(n_rows, begin + code_tile);
  for (std::uint64_t row = begin + threadIdx.x; row < end; row += blockDim.x) {
    std::uint32_t word = 0;
    for (std::uint32_t c = 0; c < n; ++c) {
      const CodedColumn& column = columns[c];
      const double x = value_at(column.column, row);
      if (x != x) continue;
      const double* thresholds = column.n > staged_thresholds ? coded.thresholds + column.first
                                                              : staged + c * staged_thresholds;
      word |= code_of(column, thresholds, x) << (c * bits);
    }
    words[blockIdx.x * n_rows + row] = word;
  }
}
