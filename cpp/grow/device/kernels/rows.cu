// Fixed-point pairs of a tree's rows -> the integers of its split search, in elements.
#include "base/random.h"
#include "grow/device/kernels/rows.cuh"
#include "grow/rows/wide_rounding.h"

// Row-major codes -> column-major codes, in tiles of 64 rows and columns.
template <class Code>
inline void transpose(const DeviceCodes& codes, Code* by_column) {
  constexpr std::uint32_t size = 64;
  __shared__ Code tile[size][size + 4 / sizeof(Code)];
  const std::uint64_t first_row = static_cast<std::uint64_t>(blockIdx.x) * size;
  const std::uint32_t first_column = blockIdx.y * size;
  for (std::uint32_t j = threadIdx.x; j < size * size; j += blockDim.x) {
    const std::uint64_t row = first_row + j / size;
    const std::uint32_t column = first_column + j % size;
    if (row < codes.n_rows && column < codes.n_stores)
      tile[j % size][j / size] =
          reinterpret_cast<const Code*>(codes.by_row + row * codes.row_stride)[column];
  }
  __syncthreads();
  for (std::uint32_t j = threadIdx.x; j < size * size; j += blockDim.x) {
    const std::uint64_t row = first_row + j % size;
    const std::uint32_t column = first_column + j / size;
    if (row < codes.n_rows && column < codes.n_stores)
      by_column[column * codes.n_rows + row] = tile[j / size][j % size];
  }
}

extern "C" __global__ void transpose_bytes(DeviceCodes codes, std::uint8_t* by_column) {
  transpose(codes, by_column);
}

extern "C" __global__ void transpose_words(DeviceCodes codes, std::uint8_t* by_column) {
  transpose(codes, reinterpret_cast<std::uint16_t*>(by_column));
}

// Range of the hessians of rows, summed over the outputs: in totals behind the sums of the outputs,
// most_h - the lowest and the highest, where there are totals for them.
struct HessianRange {
  unsigned long long below = 0, high = 0;

  void add(std::int64_t h) {
    below = max(below, static_cast<unsigned long long>(most_h - h));
    high = max(high, static_cast<unsigned long long>(h));
  }
  // By all threads of the block.
  void give(const GivenTotals& totals, std::uint32_t outputs) const {
    if (totals.n == outputs) return;
    __shared__ unsigned long long of_block[2];
    if (threadIdx.x < 2) of_block[threadIdx.x] = 0;
    __syncthreads();
    atomicMax(&of_block[0], below);
    atomicMax(&of_block[1], high);
    __syncthreads();
    if (threadIdx.x < 2)
      atomicMax(reinterpret_cast<unsigned long long*>(totals.sums + outputs) + threadIdx.x,
                of_block[threadIdx.x]);
  }
};

// The same as grow/kernels/quantise.h.
extern "C" __global__ void quantise_narrow(PairRows args, Element* elements, GivenTotals totals) {
  std::int64_t lane_total = 0;
  HessianRange range;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t position = position_at(args.rows, i);
    const FixedPair pair = args.pairs[i * args.row_stride];
    const std::uint32_t u = short_hash(args.first_position + position, args.seed);
    const auto u_g = static_cast<std::int32_t>((u & 0xffff) << (args.g_shift - 16));
    const auto u_h = static_cast<std::int32_t>((u >> 16) << (args.h_shift - 16));
    const std::int32_t g = (pair.g + u_g) >> args.g_shift;
    const std::int32_t h = (pair.h + u_h) >> args.h_shift;
    const auto narrow = static_cast<std::uint32_t>(g * 65536 + h);
    elements[i] = static_cast<Element>(narrow) << 32 | row_at(args.rows, position);
    lane_total += pack(g, h);
    range.add(h);
  }
  range.give(totals, 1);
  lane_total = warp_sum(lane_total);
  if (lane_of() == 0) add_to(totals.sums, lane_total);
  give_totals(totals);
}

extern "C" __global__ void quantise_wide(PairRows args, WideRounding g_rounding,
                                         WideRounding h_rounding, Element* elements,
                                         PackedSum* wide) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  const std::uint32_t position = position_at(args.rows, i);
  const RowId row = row_at(args.rows, position);
  elements[i] = row;
  const bool stochastic = g_rounding.stochastic() || h_rounding.stochastic();
  for (std::uint32_t k = 0; k < args.outputs; ++k) {
    const FixedPair pair = args.pairs[i * args.row_stride + k * args.output_stride];
    const std::uint32_t random =
        stochastic ? short_hash(args.first_position + position, args.seed + k) : 0;
    wide[static_cast<std::uint64_t>(row) * args.outputs + k] =
        pack(g_rounding(pair.g, random & 0xffff), h_rounding(pair.h, random >> 16));
  }
}

// Pairs of a sample, times the weights of its rows, and their sums [output][|g|, h].
extern "C" __global__ void gather_pairs(PairRows args, const float* weights, double factor,
                                        FixedPair* out, GivenTotals totals) {
  for (std::uint32_t k = 0; k < args.outputs; ++k) {
    std::int64_t abs_g = 0, sum_h = 0;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
         i += gridDim.x * blockDim.x) {
      const double scale = weights == nullptr ? 1.0 : double{weights[i]} * factor;
      const FixedPair pair =
          args.pairs[position_at(args.rows, i) * args.row_stride + k * args.output_stride];
      const FixedPair scaled{nearest(pair.g * scale), nearest(pair.h * scale)};
      out[static_cast<std::uint64_t>(i) * args.outputs + k] = scaled;
      abs_g += scaled.g < 0 ? -scaled.g : scaled.g;
      sum_h += scaled.h;
    }
    abs_g = warp_sum(abs_g);
    sum_h = warp_sum(sum_h);
    if (lane_of() != 0) continue;
    add_to(totals.sums + 2 * k, abs_g);
    add_to(totals.sums + 2 * k + 1, sum_h);
  }
  give_totals(totals);
}

// Sums of all elements, [outputs].
extern "C" __global__ void sum_values(const Element* elements, std::uint32_t n, RowValues values,
                                      GivenTotals totals) {
  HessianRange range;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n && totals.n > values.outputs;
       i += gridDim.x * blockDim.x) {
    std::int64_t h = 0;
    for (std::uint32_t c = 0; c < values.outputs; ++c) h += sum_h(value_of(values, elements[i], c));
    range.add(h);
  }
  range.give(totals, values.outputs);
  for (std::uint32_t c = 0; c < values.outputs; ++c) {
    std::int64_t sum = 0;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
      sum += value_of(values, elements[i], c);
    sum = warp_sum(sum);
    if (lane_of() == 0) add_to(totals.sums + c, sum);
  }
  give_totals(totals);
}
