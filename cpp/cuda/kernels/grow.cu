// Growth of a tree: rows to elements, partitions, histograms, split search, leaves.
//
// Sums are integers, so no result depends on the order of threads; scores of splits are the same
// operations on doubles as in grow/search/split.h, without contraction.
#include "base/random.h"
#include "cuda/kernels/warps.cuh"
#include "cuda/records.h"
#include "grow/rows/wide_rounding.h"
#include "grow/search/gain.h"
#include "tree/split_rule.h"
#include "tree/tree_rows.h"

using namespace arboost;
using namespace arboost::cuda;

// The last index whose first(index) is at most `at`; first ascends and starts at 0.
template <class First>
inline std::uint32_t last_from(std::uint32_t n, std::uint32_t at, First first) {
  std::uint32_t low = 0, high = n;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (first(middle) <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}

inline std::uint32_t code_at(const DeviceCodes& codes, const NodeTest& test, RowId row,
                             bool from_rows) {
  if (test.sparse) {
    std::uint64_t low = codes.sparse_start[test.store], high = codes.sparse_start[test.store + 1];
    const std::uint64_t end = high;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (codes.sparse_rows[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    if (low == end || codes.sparse_rows[low] != row) return test.usual;
    return codes.width == 1 ? codes.sparse_codes[low]
                            : reinterpret_cast<const std::uint16_t*>(codes.sparse_codes)[low];
  }
  if (from_rows) {
    const std::uint8_t* at = codes.by_row + static_cast<std::uint64_t>(row) * codes.row_stride;
    return codes.width == 1 ? at[test.store]
                            : reinterpret_cast<const std::uint16_t*>(at)[test.store];
  }
  const std::uint64_t at = test.store * codes.n_rows + row;
  return codes.width == 1 ? codes.by_column[at]
                          : reinterpret_cast<const std::uint16_t*>(codes.by_column)[at];
}

inline std::uint32_t position_at(const RowNumbers& rows, std::uint32_t i) {
  return rows.positions == nullptr ? i : rows.positions[i];
}
inline RowId row_at(const RowNumbers& rows, std::uint32_t position) {
  return rows.table_rows == nullptr ? position : rows.table_rows[position];
}

// The same as grow/kernels/quantise.h.
extern "C" __global__ void quantise_narrow(PairRows args, Element* elements, std::int64_t* sum) {
  std::int64_t own = 0;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t position = position_at(args.rows, i);
    const FixedPair pair = args.pairs[i * args.row_stride];
    const std::uint32_t u = short_hash(position, args.seed);
    const auto u_g = static_cast<std::int32_t>((u & 0xffff) << (args.g_shift - 16));
    const auto u_h = static_cast<std::int32_t>((u >> 16) << (args.h_shift - 16));
    const std::int32_t g = (pair.g + u_g) >> args.g_shift;
    const std::int32_t h = (pair.h + u_h) >> args.h_shift;
    const auto narrow = static_cast<std::uint32_t>(g * 65536 + h);
    elements[i] = static_cast<Element>(narrow) << 32 | row_at(args.rows, position);
    own += pack(g, h);
  }
  own = warp_sum(own);
  if (lane_of() == 0) add_to(sum, own);
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
    const std::uint32_t random = stochastic ? short_hash(position, args.seed + k) : 0;
    wide[static_cast<std::uint64_t>(row) * args.outputs + k] =
        pack(g_rounding(pair.g, random & 0xffff), h_rounding(pair.h, random >> 16));
  }
}

// Pairs of a sample, times the weights of its rows, and their sums [output][|g|, h].
extern "C" __global__ void gather_pairs(PairRows args, const float* weights, double factor,
                                        FixedPair* out, std::int64_t* sums) {
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
    add_to(sums + 2 * k, abs_g);
    add_to(sums + 2 * k + 1, sum_h);
  }
}

// Contribution of an element to channel c.
inline PackedSum value_of(const RowValues& values, Element e, std::uint32_t channel) {
  if (channel == values.outputs) return 1;
  if (values.wide != nullptr)
    return values.wide[static_cast<std::uint64_t>(row_of(e)) * values.outputs + channel];
  const auto pair = static_cast<std::int32_t>(e >> 32);
  return pack(pair >> 16, pair & 0xffff);
}

// Sums of all elements, [channels].
extern "C" __global__ void sum_values(const Element* elements, std::uint32_t n, RowValues values,
                                      std::int64_t* sums) {
  for (std::uint32_t c = 0; c < values.channels; ++c) {
    std::int64_t sum = 0;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
      sum += value_of(values, elements[i], c);
    sum = warp_sum(sum);
    if (lane_of() == 0) add_to(sums + c, sum);
  }
}

constexpr int split_threads = 256;
constexpr int rows_of_thread = tile_rows / split_threads;
constexpr int split_warps = split_threads / 32;

// Sends the rows of a tile to their sides: left ones from the front of the node's range, right ones
// from its back, with one reservation a tile. Order does not matter.
inline void partition_tile(const DeviceCodes& codes, const BatchWork& batch, Element* one,
                           Element* two) {
  __shared__ std::uint32_t offsets[2][rows_of_thread * split_warps];
  __shared__ std::uint32_t base[2];
  const std::uint32_t node = last_from(batch.n_nodes, blockIdx.x,
                                       [&](std::uint32_t j) { return batch.nodes[j].first_tile; });
  const NodeWork& work = batch.nodes[node];
  NodeCount* counts = batch.counts;
  const std::uint32_t n = work.end - work.begin;
  const std::uint32_t first = (blockIdx.x - work.first_tile) * tile_rows;
  const Element* from = (work.buffer == 0 ? one : two) + work.begin;
  Element* to = (work.buffer == 0 ? two : one) + work.begin;
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
    std::uint32_t* own = offsets[warp_of()];
    const std::uint32_t a = own[2 * lane_of()], b = own[2 * lane_of() + 1];
    std::uint32_t sum = a + b;
    for (int step = 1; step < 32; step <<= 1) {
      const std::uint32_t other = __shfl_up_sync(all_lanes, sum, step);
      if (static_cast<int>(lane_of()) >= step) sum += other;
    }
    own[2 * lane_of()] = sum - a - b;
    own[2 * lane_of() + 1] = sum - b;
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
    const std::uint32_t place = base[left ? 0 : 1] +
                                offsets[left ? 0 : 1][j * split_warps + warp_of()] +
                                __popc(side_lanes & below);
    to[left ? place : n - 1 - place] = rows[j];
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
    std::uint32_t own = 0;
    Segment parts[2] = {};
    if (j < batch.n_nodes) {
      const NodeWork& work = batch.nodes[j];
      const volatile NodeCount* count = batch.counts + j;  // of other blocks
      const std::uint32_t n_left = count->left, n_right = count->right;
      const std::uint32_t middle = work.begin + n_left;
      const bool left_is_smaller = n_left <= n_right;
      for (int s = 0; s < 2; ++s) {  // the smaller one, then the larger one
        const bool left = left_is_smaller == (s == 0);
        parts[s].begin = left ? work.begin : middle;
        parts[s].end = work.children[s] == nullptr ? parts[s].begin : left ? middle : work.end;
        parts[s].buffer = 1 - work.buffer;
        parts[s].histogram = work.children[s];
        own += parts[s].end - parts[s].begin;
      }
    }
    sums[threadIdx.x] = own;
    __syncthreads();
    for (std::uint32_t step = 1; step < blockDim.x && base + step < batch.n_nodes; step <<= 1) {
      const std::uint32_t other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
      __syncthreads();
      sums[threadIdx.x] += other;
      __syncthreads();
    }
    if (j < batch.n_nodes) {
      parts[0].first_row = before + sums[threadIdx.x] - own;
      parts[1].first_row = parts[0].first_row + (parts[0].end - parts[0].begin);
      batch.segments[2 * j] = parts[0];
      batch.segments[2 * j + 1] = parts[1];
    }
    before += sums[min(blockDim.x, batch.n_nodes - base) - 1];
    __syncthreads();
  }
  if (threadIdx.x == 0) batch.state->n_rows = before;
}

// True in all threads of the block that is the last of n to come here.
inline bool is_last(std::uint32_t* counter, std::uint32_t n) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == n - 1;
  __syncthreads();
  __threadfence();
  return last;
}

// Divides the rows of all nodes of a batch; then plans their histograms.
extern "C" __global__ void __launch_bounds__(split_threads)
    partition(DeviceCodes codes, BatchWork batch, Element* one, Element* two) {
  if (blockIdx.x < batch.n_tiles)
    partition_tile(codes, batch, one, two);
  else
    clear_histograms(batch);
  if (is_last(&batch.state->n_blocks, gridDim.x)) plan_segments(batch);
}

// Histograms of 32 stored columns with one-byte codes, in shared memory. A warp takes four rows at
// a time, eight lanes each, and a lane four columns of its row, as one word. In step s, lanes of
// row r add byte (s + r) % 4 of their words: with the column 4 l + i in bank 8 i + l, all 32 lanes
// are in different banks.
//
// Blocks take equal shares of all rows of the batch, and empty their tables at the border of a
// segment. Grid: shares, groups of columns, channels.
constexpr int rows_together = 4;
constexpr int words_ahead = 4;

inline std::uint32_t bank_of(std::uint32_t column) {
  return (column & 3) * 8 + (column >> 2);
}

extern "C" __global__ void __launch_bounds__(table_threads, tables_of_processor)
    histograms(DeviceCodes codes, const std::uint32_t* first_slot, std::uint32_t n_codes,
               BatchWork batch, const Element* one, const Element* two, RowValues values) {
  extern __shared__ std::int32_t table[];
  std::int32_t* table_g = table;
  std::int32_t* table_h = table + n_codes * 32;
  const std::uint32_t channel = blockIdx.z, first_column = blockIdx.y * 32;
  const std::uint32_t n_columns = min(32u, codes.n_stores - first_column);
  const std::uint32_t r = lane_of() / 8, l = lane_of() % 8;
  const bool has_columns = 4 * l < n_columns;
  const std::uint8_t* words = codes.by_row + first_column + (has_columns ? 4 * l : 0);
  const std::uint64_t n = batch.state->n_rows;
  auto at = static_cast<std::uint32_t>(n * blockIdx.x / gridDim.x);
  const auto end = static_cast<std::uint32_t>(n * (blockIdx.x + 1) / gridDim.x);
  if (at == end) return;
  for (std::uint32_t j = threadIdx.x; j < n_codes * 64; j += blockDim.x) table[j] = 0;
  __syncthreads();
  std::uint32_t s = last_from(2 * batch.n_nodes, at,
                              [&](std::uint32_t j) { return batch.segments[j].first_row; });
  for (; at < end; ++s) {
    const Segment segment = batch.segments[s];
    const std::uint32_t size = segment.end - segment.begin;
    const std::uint32_t begin = at - segment.first_row;
    if (begin >= size) continue;
    const std::uint32_t stop = min(size, end - segment.first_row);
    const Element* elements = (segment.buffer == 0 ? one : two) + segment.begin;
    constexpr std::uint32_t rows_of_warp = rows_together * words_ahead;
    for (std::uint32_t first = begin + warp_of() * rows_of_warp; first < stop;
         first += rows_of_warp * (table_threads / 32)) {
      Element row[words_ahead];
      std::uint32_t word[words_ahead];
#pragma unroll
      for (int a = 0; a < words_ahead; ++a) {
        const std::uint32_t i = first + a * rows_together + r;
        row[a] = i < stop ? elements[i] : 0;
      }
#pragma unroll
      for (int a = 0; a < words_ahead; ++a)
        word[a] = *reinterpret_cast<const std::uint32_t*>(
            words + static_cast<std::uint64_t>(row_of(row[a])) * codes.row_stride);
#pragma unroll
      for (int a = 0; a < words_ahead; ++a) {
        const std::uint32_t i = first + a * rows_together + r;
        if (i >= stop || !has_columns) continue;
        const PackedSum value = value_of(values, row[a], channel);
        const std::int32_t g = sum_g(value), h = sum_h(value);
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const std::uint32_t byte = (step + r) & 3;
          const std::uint32_t slot = (word[a] >> (8 * byte) & 255) * 32 + byte * 8 + l;
          if (4 * l + byte >= n_columns) continue;
          atomicAdd(&table_g[slot], g);
          atomicAdd(&table_h[slot], h);
        }
      }
    }
    __syncthreads();
    const bool is_whole = begin == 0 && stop == size;
    std::int64_t* sums = segment.histogram;
    if (batch.parts != nullptr && !is_whole)
      sums = batch.parts + static_cast<std::uint64_t>(blockIdx.x + s) * batch.histogram_size;
    // Eight columns of four codes a warp: few bank conflicts, and whole sectors of device memory.
    for (std::uint32_t j = warp_of(); j < (n_codes + 3) / 4 * 4; j += table_threads / 32) {
      const std::uint32_t column = j % 4 * 8 + lane_of() / 4;
      const std::uint32_t code = j / 4 * 4 + lane_of() % 4;
      if (code >= n_codes || column >= n_columns) continue;
      const std::uint32_t slot = code * 32 + bank_of(column);
      const std::int64_t sum = pack(table_g[slot], table_h[slot]);
      table_g[slot] = table_h[slot] = 0;
      const std::uint32_t first = first_slot[first_column + column];
      if (first + code >= first_slot[first_column + column + 1]) continue;
      std::int64_t* to = sums + static_cast<std::uint64_t>(first + code) * values.channels + channel;
      if (batch.parts != nullptr)
        *to = sum;
      else if (sum != 0)
        add_to(to, sum);
    }
    __syncthreads();
    at = segment.first_row + stop;
  }
}

// The same for two-byte codes, straight in device memory: a thread takes a row and a column.
extern "C" __global__ void histograms_wide(DeviceCodes codes, const std::uint32_t* first_slot,
                                           BatchWork batch, const Element* one, const Element* two,
                                           RowValues values) {
  const Segment* segments = batch.segments;
  const std::uint32_t n_segments = 2 * batch.n_nodes, n = batch.state->n_rows;
  for (std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < n;
       at += gridDim.x * blockDim.x) {
    const std::uint32_t s =
        last_from(n_segments, at, [=](std::uint32_t j) { return segments[j].first_row; });
    const Segment segment = segments[s];
    const Element e = ((segment.buffer == 0 ? one : two) + segment.begin)[at - segment.first_row];
    const std::uint8_t* row =
        codes.by_row + static_cast<std::uint64_t>(row_of(e)) * codes.row_stride;
    for (std::uint32_t store = 0; store < codes.n_stores; ++store) {
      const std::uint32_t code = reinterpret_cast<const std::uint16_t*>(row)[store];
      std::int64_t* slot = segment.histogram +
                           static_cast<std::uint64_t>(first_slot[store] + code) * values.channels;
      for (std::uint32_t c = 0; c < values.channels; ++c) add_to(slot + c, value_of(values, e, c));
    }
  }
}

// Slots of sparse columns, which follow those of stored columns.
extern "C" __global__ void histograms_sparse(DeviceCodes codes, BatchWork batch, const Element* one,
                                             const Element* two, RowValues values) {
  const Segment* segments = batch.segments;
  const std::uint32_t n_segments = 2 * batch.n_nodes, n = batch.state->n_rows;
  for (std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < n;
       at += gridDim.x * blockDim.x) {
    const std::uint32_t s =
        last_from(n_segments, at, [=](std::uint32_t j) { return segments[j].first_row; });
    const Segment segment = segments[s];
    const Element e = ((segment.buffer == 0 ? one : two) + segment.begin)[at - segment.first_row];
    std::int64_t* first =
        segment.histogram + static_cast<std::uint64_t>(codes.first_sparse) * values.channels;
    for (std::uint64_t k = codes.row_start[row_of(e)]; k < codes.row_start[row_of(e) + 1]; ++k) {
      const std::uint64_t slot = codes.slot_width == 2
                                     ? reinterpret_cast<const std::uint16_t*>(codes.row_slots)[k]
                                     : reinterpret_cast<const std::uint32_t*>(codes.row_slots)[k];
      for (std::uint32_t c = 0; c < values.channels; ++c)
        add_to(first + slot * values.channels + c, value_of(values, e, c));
    }
  }
}

// The block among n_shares that has a row of the batch.
inline std::uint32_t share_of(std::uint64_t row, std::uint64_t n_rows, std::uint32_t n_shares) {
  auto b = static_cast<std::uint32_t>(row * n_shares / n_rows);
  while (n_rows * b / n_shares > row) --b;
  while (n_rows * (b + 1) / n_shares <= row) ++b;
  return b;
}

// Adds up the parts of histograms. The histogram of the larger child is its parent's minus that of
// the smaller one, in place. Grid: slots, segments.
extern "C" __global__ void combine(BatchWork batch, std::uint32_t n_adders) {
  const std::uint32_t s = blockIdx.y, n_rows = batch.state->n_rows;
  const Segment segment = batch.segments[s];
  if (segment.histogram == nullptr) return;
  const std::uint32_t size = segment.end - segment.begin;
  std::uint32_t first = 0, last = 0;
  if (size > 0) {
    first = share_of(segment.first_row, n_rows, batch.n_shares);
    last = share_of(segment.first_row + size - 1, n_rows, batch.n_shares);
  }
  std::int64_t* parent = s % 2 == 0 ? batch.nodes[s / 2].parent : nullptr;
  const bool has_parts = batch.parts != nullptr && (first != last || size == 0);
  if (!has_parts && parent == nullptr) return;
  // `n_adders` threads of a warp add up the parts of one slot.
  const std::uint32_t n_slots = blockDim.x / n_adders, adder = threadIdx.x % n_adders;
  for (std::uint32_t j = blockIdx.x * n_slots + threadIdx.x / n_adders;
       j < (batch.histogram_size + n_slots - 1) / n_slots * n_slots; j += gridDim.x * n_slots) {
    const bool is_slot = j < batch.histogram_size;
    std::int64_t sum = 0;
    if (has_parts && is_slot && size > 0) {
      const std::int64_t* part =
          batch.parts + static_cast<std::uint64_t>(first + s) * batch.histogram_size + j;
#pragma unroll 4
      for (std::uint32_t b = adder; b <= last - first; b += n_adders)
        sum += part[static_cast<std::uint64_t>(b) * batch.histogram_size];
    }
    for (std::uint32_t step = n_adders / 2; step > 0; step >>= 1)
      sum += __shfl_xor_sync(all_lanes, sum, step);
    if (!is_slot || adder != 0) continue;
    if (has_parts)
      segment.histogram[j] = sum;
    else
      sum = segment.histogram[j];
    if (parent != nullptr) parent[j] -= sum;
  }
}

constexpr int search_threads = 256;
constexpr double forbidden = -1.7976931348623157e308;

// Better: the higher score; of equals the lower place.
struct Candidate {
  double score;
  std::uint32_t place;
};

inline Candidate better(const Candidate& a, const Candidate& b) {
  return b.score > a.score || (b.score == a.score && b.place < a.place) ? b : a;
}

// Inclusive prefix sums over a block of search_threads; `room` is shared memory.
inline std::int64_t prefix_sum(std::int64_t value, std::int64_t* room) {
  for (int step = 1; step < 32; step <<= 1) {
    const std::int64_t other = __shfl_up_sync(all_lanes, value, step);
    if (static_cast<int>(lane_of()) >= step) value += other;
  }
  if (lane_of() == 31) room[warp_of()] = value;
  __syncthreads();
  for (std::uint32_t w = 0; w < warp_of(); ++w) value += room[w];
  __syncthreads();
  return value;
}

// The score of a split with `left` of the total on its left. `has_values`: not only missing ones.
template <bool plain>
inline double score_of(const GainParams& p, std::int64_t left, std::int64_t total,
                       bool has_values) {
  const std::int64_t right = total - left;
  const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
  bool allowed = left_h >= p.min_h && right_h >= p.min_h;
  double score;
  if (p.bounded) {
    const double left_g = sum_g(left), right_g = sum_g(right);
    const double left_step = bounded_step(p, left_g, left_h);
    const double right_step = bounded_step(p, right_g, right_h);
    score = score_of_step(p, left_g, left_h, left_step) +
            score_of_step(p, right_g, right_h, right_step);
    const double direction = p.direction;
    allowed = allowed && direction * (right_step - left_step) >= 0 && has_values;
  } else {
    score = split_score<plain, double>(p, sum_g(left), left_h, sum_g(right), right_h);
  }
  return allowed ? score : forbidden;
}

// The best feature of a search, of equals the first; by the first warp.
inline void choose_feature(const BatchWork& batch, std::uint32_t s) {
  if (warp_of() != 0) return;
  const NodeSearch& search = batch.searches[s];
  const volatile FoundSplit* own =  // of other blocks
      batch.found + static_cast<std::uint64_t>(s) * batch.most_features;
  Candidate highest{search.floor, 0xffffffffu};
  for (std::uint32_t j = lane_of(); j < search.n_features; j += 32)
    if (own[j].found) highest = better(highest, {own[j].score, j});
  for (int step = 16; step > 0; step >>= 1)
    highest = better(highest, {__shfl_xor_sync(all_lanes, highest.score, step),
                               __shfl_xor_sync(all_lanes, highest.place, step)});
  if (lane_of() != 0) return;
  if (highest.place == 0xffffffffu)
    batch.best[s].found = 0;
  else
    batch.best[s] =
        batch.found[static_cast<std::uint64_t>(s) * batch.most_features + highest.place];
}

// The best split of one feature in one node: the same as grow/search/split.h. Grid: features,
// searches.
template <bool plain>
inline void search_feature(GainParams p, const BatchWork& batch, const FeatureColumn* columns) {
  __shared__ std::int64_t room[search_threads / 32];
  __shared__ Candidate warp_best[search_threads / 32];
  __shared__ std::uint32_t next;
  const NodeSearch search = batch.searches[blockIdx.y];
  const std::uint32_t feature = batch.features[search.first_feature + blockIdx.x];
  const FeatureColumn column = columns[feature];
  const NodeWork& work = batch.nodes[search.node];
  const NodeCount rows = batch.counts[search.node];
  const bool is_smaller = (rows.left <= rows.right) == (search.side == 0);
  const std::int64_t* histogram = is_smaller               ? work.children[0]
                                  : work.parent != nullptr ? work.parent
                                                           : work.children[1];
  const auto channels = static_cast<std::uint32_t>(p.channels);
  const std::int64_t* slots = histogram + static_cast<std::uint64_t>(column.first_slot) * channels;
  p.lower = search.lower;
  p.upper = search.upper;
  p.direction = column.direction;
  const std::uint32_t t = threadIdx.x, n = column.n_bins;
  const bool counted = channels > 1;
  const std::int64_t value = t < n ? slots[t * channels] : 0;
  const std::int64_t count = counted && t < n ? slots[t * channels + 1] : 0;
  const std::int64_t missing = column.has_missing ? slots[n * channels] : 0;
  const std::int64_t missing_count = counted && column.has_missing ? slots[n * channels + 1] : 0;
  const bool has_missing = missing != 0 || missing_count != 0;
  const std::int64_t prefix = prefix_sum(value, room);
  const std::int64_t rows_left = counted ? prefix_sum(count, room) : 0;
  const std::int64_t all_rows = search.side == 0 ? rows.left : rows.right;
  const auto enough = [&](std::int64_t left) {
    return !counted || (left >= p.min_count && all_rows - left >= p.min_count);
  };
  if (t == 0) next = n;

  Candidate best{search.floor, 0xffffffffu};
  if (t < (has_missing ? n : n - 1) && enough(rows_left))  // missing values on the right
    best = better(best, {score_of<plain>(p, prefix, search.total, true), t});
  if (has_missing && t < n - 1 && enough(rows_left + missing_count))
    best = better(best, {score_of<plain>(p, prefix + missing, search.total, prefix != 0), 256 + t});
  for (int step = 16; step > 0; step >>= 1)
    best = better(best, {__shfl_xor_sync(all_lanes, best.score, step),
                         __shfl_xor_sync(all_lanes, best.place, step)});
  if (lane_of() == 0) warp_best[warp_of()] = best;
  __syncthreads();
  best = warp_best[0];
  for (int w = 1; w < search_threads / 32; ++w) best = better(best, warp_best[w]);
  const bool is_found = best.score > search.floor;
  const std::uint32_t bin = best.place & 255;
  if (is_found && t > bin && t < n && (value != 0 || count != 0)) atomicMin(&next, t);
  __syncthreads();
  FoundSplit* out =
      batch.found + static_cast<std::uint64_t>(blockIdx.y) * batch.most_features + blockIdx.x;
  if (!is_found) {
    if (t == 0) out->found = 0;
  } else if (t == bin) {
    const bool missing_left = best.place >= 256;
    *out = {best.score,
            prefix + (missing_left ? missing : 0),
            bin,
            next,
            feature,
            1,
            static_cast<std::uint8_t>(missing_left),
            static_cast<std::uint8_t>(has_missing),
            0};
  }
}

// Searches, and the best feature of each search by the last of its blocks.
template <bool plain>
inline void search_splits(const GainParams& p, const BatchWork& batch,
                          const FeatureColumn* columns) {
  const std::uint32_t n = batch.searches[blockIdx.y].n_features;
  if (blockIdx.x >= n) return;
  search_feature<plain>(p, batch, columns);
  if (is_last(batch.n_done + blockIdx.y, n)) choose_feature(batch, blockIdx.y);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_plain(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  search_splits<true>(p, batch, columns);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_limited(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  search_splits<false>(p, batch, columns);
}

// Sums of the pairs [leaf][output][g, h] of a tree's rows, whose elements are those of its leaves.
extern "C" __global__ void leaf_sums(const LeafRows* leaves, std::uint32_t n_leaves,
                                     const Element* one, const Element* two, PairRows pairs,
                                     const std::uint32_t* number_of_row, std::int64_t* sums) {
  const std::uint32_t which =
      last_from(n_leaves, blockIdx.x, [=](std::uint32_t j) { return leaves[j].first_tile; });
  const LeafRows leaf = leaves[which];
  const Element* elements = leaf.buffer == 0 ? one : two;
  const std::uint32_t begin = leaf.begin + (blockIdx.x - leaf.first_tile) * tile_rows;
  const std::uint32_t end = min(leaf.end, begin + tile_rows);
  for (std::uint32_t k = 0; k < pairs.outputs; ++k) {
    std::int64_t g = 0, h = 0;
#pragma unroll 4
    for (std::uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const RowId row = row_of(elements[i]);
      const std::uint32_t number = number_of_row == nullptr ? row : number_of_row[row];
      const FixedPair pair = pairs.pairs[number * pairs.row_stride + k * pairs.output_stride];
      g += pair.g;
      h += pair.h;
    }
    g = warp_sum(g);
    h = warp_sum(h);
    if (lane_of() != 0) continue;
    std::int64_t* sum = sums + (static_cast<std::uint64_t>(leaf.leaf) * pairs.outputs + k) * 2;
    add_to(sum, g);
    add_to(sum + 1, h);
  }
}

// number_of_row[row(i)] = i
extern "C" __global__ void number_rows(RowNumbers rows, std::uint32_t n,
                                       std::uint32_t* number_of_row) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) number_of_row[row_at(rows, position_at(rows, i))] = i;
}

// The leaf of a row in a tree.
inline std::uint32_t leaf_at(const DeviceCodes& codes, const WalkNode* tree, const NodeTest* tests,
                             RowId row) {
  const std::uint8_t* own = codes.by_row + static_cast<std::uint64_t>(row) * codes.row_stride;
  std::uint32_t at = 0;
  for (;;) {
    const uint4 loaded = *reinterpret_cast<const uint4*>(tree + at);
    const WalkNode node{loaded.x, loaded.y, loaded.z, loaded.w};
    if (node.left == 0) return at;
    bool left;
    if (node.store & is_unusual) {
      left = goes_left(tests[at].rule, code_at(codes, tests[at], row, true));
    } else {
      const std::uint32_t code = own[node.store];
      left = code <= node.bin || code == node.missing_left;
    }
    at = node.left + (left ? 0 : 1);
  }
}

extern "C" __global__ void walk(DeviceCodes codes, const WalkNode* tree, const NodeTest* tests,
                                RowNumbers rows, std::uint32_t n, std::uint32_t* leaf_of_row) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const RowId row = row_at(rows, position_at(rows, i));
  leaf_of_row[row] = leaf_at(codes, tree, tests, row);
}

// scores[position][...] += values of the leaf of each row, [leaf][width]; `outputs` scores a row.
extern "C" __global__ void add_values(DeviceCodes codes, const WalkNode* tree,
                                      const NodeTest* tests, RowNumbers rows, std::uint32_t n,
                                      const double* values, std::uint32_t width,
                                      std::uint32_t outputs, double* scores) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::uint32_t position = position_at(rows, i);
  const std::uint32_t leaf = leaf_at(codes, tree, tests, row_at(rows, position));
  for (std::uint32_t k = 0; k < width; ++k)
    scores[static_cast<std::uint64_t>(position) * outputs + k] += values[leaf * width + k];
}

// Sums of pairs [leaf][output][g, h] by the leaves of rows.
extern "C" __global__ void sums_by_leaf(PairRows pairs, const std::uint32_t* leaf_of_row,
                                        std::int64_t* sums) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs.n;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t leaf = leaf_of_row[row_at(pairs.rows, position_at(pairs.rows, i))];
    for (std::uint32_t k = 0; k < pairs.outputs; ++k) {
      const FixedPair pair = pairs.pairs[i * pairs.row_stride + k * pairs.output_stride];
      std::int64_t* sum = sums + (static_cast<std::uint64_t>(leaf) * pairs.outputs + k) * 2;
      add_to(sum, pair.g);
      add_to(sum + 1, pair.h);
    }
  }
}
