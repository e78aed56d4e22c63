// Rows of the nodes of a batch -> their sides, and the histograms that are built of them.
#include "grow/device/kernels/rows.cuh"

constexpr int split_threads = 256;
constexpr int rows_of_thread = tile_rows / split_threads;
constexpr int split_warps = split_threads / 32;

// Sends the rows of a tile to their sides: left ones from the front of the node's range, right ones
// from its back, with one reservation a tile. Order does not matter.
inline void partition_tile(const DeviceCodes& codes, const BatchWork& batch, Element* first_buffer,
                           Element* second_buffer) {
  __shared__ std::uint32_t offsets[2][rows_of_thread * split_warps];
  __shared__ std::uint32_t base[2];
  const std::uint32_t node = last_from(batch.n_nodes, blockIdx.x,
                                       [&](std::uint32_t j) { return batch.nodes[j].first_tile; });
  const NodeWork& work = batch.nodes[node];
  NodeCount* counts = batch.counts;
  const std::uint32_t n = work.end - work.begin;
  const std::uint32_t first = (blockIdx.x - work.first_tile) * tile_rows;
  const Element* from = (work.buffer == 0 ? first_buffer : second_buffer) + work.begin;
  Element* to = (work.buffer == 0 ? second_buffer : first_buffer) + work.begin;
  const NodeTest& test = work.test;
  Element rows[rows_of_thread];
  std::uint32_t left_lanes[rows_of_thread], lanes[rows_of_thread];
#pragma unroll
  for (int j = 0; j < rows_of_thread; ++j) {
    const std::uint32_t i = first + j * split_threads + threadIdx.x;
    if (i < n) rows[j] = from[i];
  }
#pragma unroll
  for (int j = 0; j < rows_of_thread; ++j) {
    const std::uint32_t i = first + j * split_threads + threadIdx.x;
    bool left = false;
    if (i < n) left = goes_left(test.rule, code_at(codes, test, row_of(rows[j]), false));
    lanes[j] = __ballot_sync(all_lanes, i < n);
    left_lanes[j] = __ballot_sync(all_lanes, left);
    if (lane_of() == 0) {
      offsets[0][j * split_warps + warp_of()] = __popc(left_lanes[j]);
      offsets[1][j * split_warps + warp_of()] = __popc(lanes[j] & ~left_lanes[j]);
    }
  }
  __syncthreads();
  if (warp_of() < 2) {  // exclusive sums of the 64 counts of a side, two a lane
    std::uint32_t* side_counts = offsets[warp_of()];
    const std::uint32_t a = side_counts[2 * lane_of()], b = side_counts[2 * lane_of() + 1];
    std::uint32_t sum = a + b;
    for (int step = 1; step < 32; step <<= 1) {
      const std::uint32_t other = __shfl_up_sync(all_lanes, sum, step);
      if (static_cast<int>(lane_of()) >= step) sum += other;
    }
    side_counts[2 * lane_of()] = sum - a - b;
    side_counts[2 * lane_of() + 1] = sum - b;
    if (lane_of() == 31)
      base[warp_of()] = atomicAdd(warp_of() == 0 ? &counts[node].left : &counts[node].right, sum);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < rows_of_thread; ++j) {
    const std::uint32_t i = first + j * split_threads + threadIdx.x;
    if (i >= n) continue;
    const std::uint32_t below = (1u << lane_of()) - 1;
    const bool left = left_lanes[j] >> lane_of() & 1;
    const std::uint32_t side_lanes = left ? left_lanes[j] : lanes[j] & ~left_lanes[j];
    const std::uint32_t position = base[left ? 0 : 1] +
                                   offsets[left ? 0 : 1][j * split_warps + warp_of()] +
                                   __popc(side_lanes & below);
    to[left ? position : n - 1 - position] = rows[j];
  }
}

// Clears the histograms to build; blocks behind those of the tiles.
inline void clear_histograms(const BatchWork& batch) {
  const std::uint32_t n_blocks = gridDim.x - batch.n_tiles;
  for (std::uint32_t j = blockIdx.x - batch.n_tiles; j < 2 * batch.n_nodes; j += n_blocks) {
    std::int64_t* histogram = batch.nodes[j / 2].children[j % 2];
    if (histogram == nullptr) continue;
    for (std::uint32_t k = threadIdx.x; k < batch.histogram_size; k += blockDim.x) histogram[k] = 0;
  }
}

// Segments of the histograms to build, and their number of rows in all.
inline void plan_segments(const BatchWork& batch) {
  __shared__ std::uint32_t sums[split_threads];
  std::uint32_t before = 0;
  for (std::uint32_t base = 0; base < batch.n_nodes; base += blockDim.x) {
    const std::uint32_t j = base + threadIdx.x;
    std::uint32_t n_node_rows = 0;
    Segment parts[2] = {};
    if (j < batch.n_nodes) {
      const NodeWork& work = batch.nodes[j];
      const volatile NodeCount* count = batch.counts + j;  // of other blocks
      const std::uint32_t n_left = count->left, n_right = count->right;
      batch.final_counts[j] = {n_left, n_right};
      const std::uint32_t middle = work.begin + n_left;
      const bool left_is_first = batch.is_by_side || n_left <= n_right;
      for (int s = 0; s < 2; ++s) {  // in the order of work.children
        const bool left = left_is_first == (s == 0);
        parts[s].begin = left ? work.begin : middle;
        parts[s].end = work.children[s] == nullptr ? parts[s].begin : left ? middle : work.end;
        parts[s].buffer = 1 - work.buffer;
        parts[s].histogram = work.children[s];
        n_node_rows += parts[s].end - parts[s].begin;
      }
    }
    sums[threadIdx.x] = n_node_rows;
    __syncthreads();
    for (std::uint32_t step = 1; step < blockDim.x && base + step < batch.n_nodes; step <<= 1) {
      const std::uint32_t other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
      __syncthreads();
      sums[threadIdx.x] += other;
      __syncthreads();
    }
    if (j < batch.n_nodes) {
      parts[0].first_row = before + sums[threadIdx.x] - n_node_rows;
      parts[1].first_row = parts[0].first_row + (parts[0].end - parts[0].begin);
      batch.segments[2 * j] = parts[0];
      batch.segments[2 * j + 1] = parts[1];
    }
    before += sums[min(blockDim.x, batch.n_nodes - base) - 1];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  batch.state->n_rows = before;
  if (batch.n_searches == 0) give(batch.answer);
}

// Divides the rows of all nodes of a batch; then plans their histograms.
extern "C" __global__ void __launch_bounds__(split_threads)
    partition(DeviceCodes codes, BatchWork batch, Element* first_buffer, Element* second_buffer) {
  if (blockIdx.x < batch.n_tiles)
    partition_tile(codes, batch, first_buffer, second_buffer);
  else
    clear_histograms(batch);
  if (is_last(&batch.state->n_blocks, gridDim.x)) plan_segments(batch);
}
