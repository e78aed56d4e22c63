// Scores -> gradients and hessians -> fixed-point pairs: the losses of loss/pointwise.h, a thread a
// row.
#include "cuda/kernels/warps.cuh"
#include "loss/pointwise.h"

namespace arboost::cuda {

// Bounds or pairs of one row and output; the caller adds up.
struct RowResult {
  std::int64_t g, h;  // bits of |g| and h, or |g| and h in fixed point
};

inline RowResult put_pair(const LossArgs& args, std::size_t i, std::size_t output,
                          const device::GradientPair& pair) {
  if (args.pairs == nullptr)
    return {device::bits_of(pair.g) & 0x7fffffffffffffff, device::bits_of(pair.h)};
  const std::int32_t g = device::round_to_int(pair.g * args.g_scale);
  const std::int32_t h = device::round_to_int(pair.h * args.h_scale);
  args.pairs[output * args.output_stride + i * args.row_stride] = {g, h};
  return {g < 0 ? -std::int64_t{g} : g, h};
}

// The gradient of one row and output, but for softmax.
inline device::GradientPair pair_at(const LossArgs& args, std::size_t i, std::size_t output) {
  const double w = args.rows.weight == nullptr ? 1.0 : args.rows.weight[i];
  const double score = args.rows.scores[i * args.rows.outputs + output];
  device::GradientPair pair{0, 0};
  device::with_loss(args, output, [&](auto loss) {
    pair = args.least_squares
               ? device::LeastSquares<decltype(loss)>{loss}.at(args.rows.y[i], score, w)
               : loss.at(args.rows.y[i], score, w);
  });
  return pair;
}

// The same for softmax, from the highest score of the row and the sum of its exponentials; as in
// loss/gradients.h.
inline device::GradientPair softmax_pair(const LossArgs& args, std::size_t i, std::size_t output,
                                         double highest, double total) {
  const double w = args.rows.weight == nullptr ? 1.0 : args.rows.weight[i];
  const double p =
      device::exp_of(args.rows.scores[i * args.rows.outputs + output] - highest) / total;
  const double hit = args.rows.y[i] == static_cast<double>(output) ? 1.0 : 0.0;
  return {w * (p - hit), args.least_squares ? w : 2.0 * w * (p * (1.0 - p))};
}

}  // namespace arboost::cuda

// Totals: largest |g| and h as bits, or the sums |g|, h of each output.
extern "C" __global__ void gradients(arboost::LossArgs args, arboost::cuda::GivenTotals totals) {
  using namespace arboost;
  using namespace arboost::cuda;
  const std::size_t outputs = args.rows.outputs, n = args.rows.n_rows;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const bool is_softmax = args.loss == Loss::softmax;
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t last = (n + 31) / 32 * 32;  // all lanes of a warp take part in sums
  unsigned long long max_g = 0, max_h = 0;
  std::int64_t sum_g = 0, sum_h = 0;
  // Sums of the block, by output, for as many outputs as fit.
  constexpr std::size_t most_shared = 32;
  __shared__ unsigned long long block_sums[2 * most_shared];
  if (threadIdx.x < 2 * most_shared) block_sums[threadIdx.x] = 0;
  __syncthreads();
  for (std::size_t i = first; i < last; i += step) {
    double highest = 0, total = 0;
    if (is_softmax && i < n) {
      const double* scores = args.rows.scores + i * outputs;
      highest = scores[0];
      for (std::size_t k = 1; k < outputs; ++k) highest = scores[k] > highest ? scores[k] : highest;
      for (std::size_t k = 0; k < outputs; ++k) total += device::exp_of(scores[k] - highest);
    }
    for (std::size_t k = 0; k < outputs; ++k) {
      RowResult row{0, 0};
      if (i < n)
        row = put_pair(args, i, k,
                       is_softmax ? softmax_pair(args, i, k, highest, total) : pair_at(args, i, k));
      if (args.pairs == nullptr) {
        max_g = max(max_g, static_cast<unsigned long long>(row.g));
        max_h = max(max_h, static_cast<unsigned long long>(row.h));
      } else if (outputs == 1) {
        sum_g += row.g;
        sum_h += row.h;
      } else {
        const std::int64_t g = warp_sum(row.g), h = warp_sum(row.h);
        if (lane_of() == 0) {
          auto* sums = k < most_shared ? reinterpret_cast<std::int64_t*>(block_sums) : totals.sums;
          add_to(&sums[2 * k], g);
          add_to(&sums[2 * k + 1], h);
        }
      }
    }
  }
  if (args.pairs == nullptr) {
    for (int s = 16; s > 0; s >>= 1) {
      max_g = max(max_g, __shfl_xor_sync(all_lanes, max_g, s));
      max_h = max(max_h, __shfl_xor_sync(all_lanes, max_h, s));
    }
    if (lane_of() == 0) {
      auto* largest = reinterpret_cast<unsigned long long*>(totals.sums);
      atomicMax(&largest[0], max_g);
      atomicMax(&largest[1], max_h);
    }
  } else if (outputs == 1) {
    sum_g = warp_sum(sum_g);
    sum_h = warp_sum(sum_h);
    if (lane_of() == 0) {
      add_to(&totals.sums[0], sum_g);
      add_to(&totals.sums[1], sum_h);
    }
  } else {
    __syncthreads();
    if (threadIdx.x < min(2 * outputs, 2 * most_shared))
      add_to(&totals.sums[threadIdx.x], static_cast<std::int64_t>(block_sums[threadIdx.x]));
  }
  give_totals(totals);
}

// The same scores for every row.
extern "C" __global__ void fill_scores(const double* of_row, std::uint32_t outputs, std::uint64_t n,
                                       double* scores) {
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step)
    scores[i] = of_row[i % outputs];
}
