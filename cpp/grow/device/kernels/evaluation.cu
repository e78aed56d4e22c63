// Evaluation sets: trees of a round -> scores -> sum of the losses, in the host's order of sums.
#include "grow/device/kernels/leaf_at.cuh"
#include "loss/lane_sums.h"
#include "loss/pointwise.h"

// scores[i][...] += factor * values of the leaves of row i, tree after tree; values are
// [node][width].
extern "C" __global__ void add_trees(DeviceCodes codes, const WalkNode* nodes,
                                     const NodeTest* tests, const double* values,
                                     const RoundTree* trees, std::uint32_t n_trees, RowNumbers rows,
                                     std::uint32_t n, std::uint32_t width, std::uint32_t outputs,
                                     double* scores) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const RowId row = row_at(rows, i);
  for (std::uint32_t t = 0; t < n_trees; ++t) {
    const RoundTree tree = trees[t];
    const std::uint32_t leaf =
        tree.first + leaf_at(codes, nodes + tree.first, tests + tree.first, row);
    double* score = scores + static_cast<std::uint64_t>(i) * outputs + tree.output;
    for (std::uint32_t k = 0; k < width; ++k)
      score[k] += tree.factor * values[static_cast<std::uint64_t>(leaf) * width + k];
  }
}

namespace arboost::cuda {

// The loss of a row over all outputs, as in loss/value.h.
inline double loss_of_row(const LossArgs& args, std::size_t i) {
  const std::size_t outputs = args.rows.outputs;
  const double* scores = args.rows.scores + i * outputs;
  const double y = args.rows.y[i];
  double value = 0;
  if (args.loss != Loss::softmax) {
    for (std::size_t k = 0; k < outputs; ++k)
      device::with_loss(args, k, [&](auto loss) { value += loss.value(y, scores[k]); });
    return value;
  }
  double highest = scores[0], score = 0, total = 0;
  for (std::size_t k = 0; k < outputs; ++k) {
    highest = scores[k] > highest ? scores[k] : highest;
    score = y == static_cast<double>(k) ? scores[k] : score;
  }
  for (std::size_t k = 0; k < outputs; ++k) total += device::exp_of(scores[k] - highest);
  return device::log_of(total) + (highest - score);
}

}  // namespace arboost::cuda

// The loss and the weight of each block of rows: sums[block][2].
extern "C" __global__ void __launch_bounds__(256) block_losses(LossArgs args, double* sums) {
  __shared__ double values[value_block], weights[value_block], lanes[16];
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * value_block;
  const std::size_t i = first + threadIdx.x, n = args.rows.n_rows;
  const double weight = i >= n ? 0.0 : args.rows.weight == nullptr ? 1.0 : args.rows.weight[i];
  double value = i < n ? loss_of_row(args, i) : 0.0;
  if (args.rows.weight != nullptr) value *= weight;
  values[threadIdx.x] = value;
  weights[threadIdx.x] = weight;
  __syncthreads();
  if (threadIdx.x < 16) {
    const double* numbers = (threadIdx.x < 8 ? values : weights) + threadIdx.x % 8;
    double sum = 0;
    for (std::size_t j = 0; j < value_block; j += 8) sum += numbers[j];
    lanes[threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.x < 2) sums[2 * blockIdx.x + threadIdx.x] = sum_of_lanes(lanes + 8 * threadIdx.x);
}

// total[2] from the sums of the blocks; one block, `chunks` has room for two numbers a chunk.
extern "C" __global__ void total_loss(const double* sums, std::uint32_t n_blocks, double* chunks,
                                      double* total) {
  constexpr std::uint32_t blocks_of_chunk = value_chunk / value_block;
  const std::uint32_t n_chunks = (n_blocks + blocks_of_chunk - 1) / blocks_of_chunk;
  for (std::uint32_t c = threadIdx.x; c < 2 * n_chunks; c += blockDim.x) {
    const std::uint32_t first = c / 2 * blocks_of_chunk;
    const std::uint32_t end = min(n_blocks, first + blocks_of_chunk);
    double sum = 0;
    for (std::uint32_t block = first; block < end; ++block) sum += sums[2 * block + c % 2];
    chunks[c] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= 2) return;
  double sum = 0;
  for (std::uint32_t c = 0; c < n_chunks; ++c) sum += chunks[2 * c + threadIdx.x];
  total[threadIdx.x] = sum;
}
