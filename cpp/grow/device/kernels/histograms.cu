// Rows of the segments of a batch -> histograms of its nodes.
#include "grow/device/kernels/parts.cuh"
#include "grow/device/kernels/rows.cuh"

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
               BatchWork batch, const Element* first_buffer, const Element* second_buffer,
               RowValues values) {
  ARBOOST_DYNAMIC_SHARED(std::int32_t, table);
  std::int32_t* table_g = table;
  std::int32_t* table_h = table + n_codes * 32;
  const std::uint32_t channel = blockIdx.z, first_column = blockIdx.y * 32;
  const std::uint32_t n_columns = min(32u, codes.n_stores - first_column);
  const std::uint32_t r = lane_of() / 8, l = lane_of() % 8;
  const bool has_columns = 4 * l < n_columns;
  const bool is_count = channel == values.outputs;  // of rows, in place of h
  const std::uint8_t* words = codes.by_row + first_column + (has_columns ? 4 * l : 0);
  const std::uint64_t n = batch.state->n_rows;
  const std::uint32_t n_shares = shares_of(batch);
  if (n == 0 || blockIdx.x >= n_shares) return;
  auto at = static_cast<std::uint32_t>(n * blockIdx.x / n_shares);
  const auto end = static_cast<std::uint32_t>(n * (blockIdx.x + 1) / n_shares);
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
    const Element* elements = (segment.buffer == 0 ? first_buffer : second_buffer) + segment.begin;
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
          if (!is_count) atomicAdd(&table_g[slot], g);
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
      std::int64_t* to =
          sums + static_cast<std::uint64_t>(first + code) * values.channels + channel;
      if (batch.parts != nullptr)
        *to = sum;
      else if (sum != 0)
        add_to(to, sum);
    }
    __syncthreads();
    at = segment.first_row + stop;
  }
}

// A row of a batch by its position among all rows of the segments.
struct PlacedRow {
  std::int64_t* histogram;
  Element element;
};

inline PlacedRow row_at_place(const BatchWork& batch, std::uint32_t at, const Element* first_buffer,
                              const Element* second_buffer) {
  const Segment& segment = batch.segments[last_from(
      2 * batch.n_nodes, at, [&](std::uint32_t j) { return batch.segments[j].first_row; })];
  const Element* elements = (segment.buffer == 0 ? first_buffer : second_buffer) + segment.begin;
  return {segment.histogram, elements[at - segment.first_row]};
}

// The same for two-byte codes, straight in device memory: a thread takes a row.
extern "C" __global__ void histograms_wide(DeviceCodes codes, const std::uint32_t* first_slot,
                                           BatchWork batch, const Element* first_buffer,
                                           const Element* second_buffer, RowValues values) {
  const std::uint32_t n = batch.state->n_rows;
  for (std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < n;
       at += gridDim.x * blockDim.x) {
    const auto [histogram, e] = row_at_place(batch, at, first_buffer, second_buffer);
    const std::uint8_t* row =
        codes.by_row + static_cast<std::uint64_t>(row_of(e)) * codes.row_stride;
    for (std::uint32_t store = 0; store < codes.n_stores; ++store) {
      const std::uint32_t code = reinterpret_cast<const std::uint16_t*>(row)[store];
      std::int64_t* slot =
          histogram + static_cast<std::uint64_t>(first_slot[store] + code) * values.channels;
      for (std::uint32_t c = 0; c < values.channels; ++c) add_to(slot + c, value_of(values, e, c));
    }
  }
}

// Slots of sparse columns, which follow those of stored columns.
extern "C" __global__ void histograms_sparse(DeviceCodes codes, BatchWork batch,
                                             const Element* first_buffer,
                                             const Element* second_buffer, RowValues values) {
  const std::uint32_t n = batch.state->n_rows;
  for (std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < n;
       at += gridDim.x * blockDim.x) {
    const auto [histogram, e] = row_at_place(batch, at, first_buffer, second_buffer);
    std::int64_t* first =
        histogram + static_cast<std::uint64_t>(codes.first_sparse) * values.channels;
    for (std::uint64_t k = codes.row_start[row_of(e)]; k < codes.row_start[row_of(e) + 1]; ++k) {
      const std::uint64_t slot = codes.slot_width == 2
                                     ? reinterpret_cast<const std::uint16_t*>(codes.row_slots)[k]
                                     : reinterpret_cast<const std::uint32_t*>(codes.row_slots)[k];
      for (std::uint32_t c = 0; c < values.channels; ++c)
        add_to(first + slot * values.channels + c, value_of(values, e, c));
    }
  }
}

// Adds up the parts of histograms. The histogram of the larger child is its parent's minus that of
// the smaller one, in place. Grid: slots, segments.
extern "C" __global__ void combine(BatchWork batch, std::uint32_t n_adders) {
  const std::uint32_t s = blockIdx.y;
  const SegmentParts parts = parts_of(batch, s);
  if (parts.histogram == nullptr) return;
  std::int64_t* parent = s % 2 == 0 ? batch.nodes[s / 2].parent : nullptr;
  if (!parts.is_divided && parent == nullptr) return;
  // `n_adders` threads of a warp add up the parts of one slot.
  const std::uint32_t n_slots = blockDim.x / n_adders, adder = threadIdx.x % n_adders;
  for (std::uint32_t j = blockIdx.x * n_slots + threadIdx.x / n_adders;
       j < (batch.histogram_size + n_slots - 1) / n_slots * n_slots; j += gridDim.x * n_slots) {
    const bool is_slot = j < batch.histogram_size;
    std::int64_t sum = 0;
    if (parts.is_divided && is_slot) sum = sum_of_parts(parts, batch, j, adder, n_adders);
    for (std::uint32_t step = n_adders / 2; step > 0; step >>= 1)
      sum += __shfl_xor_sync(all_lanes, sum, step);
    if (!is_slot || adder != 0) continue;
    if (parts.is_divided)
      parts.histogram[j] = sum;
    else
      sum = parts.histogram[j];
    if (parent != nullptr) parent[j] -= sum;
  }
}
