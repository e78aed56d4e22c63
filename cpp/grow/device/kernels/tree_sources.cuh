// Sums of a node's rows by the codes of a feature: an entry a thread, in the order of the codes.
#pragma once

#include "grow/device/device_tree_records.h"
#include "grow/device/kernels/groups.cuh"
#include "grow/device/kernels/rows.cuh"

// One channel at an entry: sums of its code, of the codes up to it, and of missing values.
struct ChannelSums {
  std::int64_t own, before, missing;
};

// The codes of a feature.
struct CodesOf {
  const std::uint8_t* first;
  std::uint64_t stride;
  const std::uint8_t* own_codes;

  std::uint32_t operator[](RowId row) const {
    const std::uint32_t stored = first[row * stride];
    return own_codes == nullptr ? stored : own_codes[stored];
  }
};

// Few rows are on a sector each, in either order; those of the row-major order serve all features.
inline CodesOf codes_of(const DeviceCodes& codes, const TreeColumn& column, std::uint32_t n_rows) {
  constexpr std::uint32_t dense = 16;
  if (n_rows >= codes.n_rows / dense)
    return {codes.by_column + column.store * codes.n_rows, 1, column.own_codes};
  return {codes.by_row + column.store, codes.row_stride, column.own_codes};
}

// Rows of a small node, a lane each, sorted by their codes: the last row of a code is its entry.
struct LaneSource {
  Element element;
  bool is_row;
  std::uint32_t sorted = 0, start = 0;  // code and lane of a row; first lane of its code
  bool is_last = false;

  void open(const TreeWork& w, const TreeColumn& column) {
    constexpr std::uint32_t no_row = most_codes;
    const CodesOf codes{w.codes.by_row + column.store, w.codes.row_stride, column.own_codes};
    const std::uint32_t own = is_row ? codes[row_of(element)] : no_row;
    sorted = own << 5 | lane_of();
    for (std::uint32_t size = 2; size <= 32; size <<= 1)
      for (std::uint32_t step = size / 2; step > 0; step >>= 1) {
        const std::uint32_t other = __shfl_xor_sync(all_lanes, sorted, static_cast<int>(step));
        const bool rises = (lane_of() & size) == 0 || size == 32;
        const bool is_first = (lane_of() & step) == 0;
        sorted = (sorted < other) == (is_first == rises) ? sorted : other;
      }
    const std::uint32_t next = __shfl_down_sync(all_lanes, sorted, 1);
    const std::uint32_t before = __shfl_up_sync(all_lanes, sorted, 1);
    is_last = lane_of() == 31 || next >> 5 != sorted >> 5;
    const std::uint32_t starts =
        __ballot_sync(all_lanes, lane_of() == 0 || before >> 5 != sorted >> 5);
    start = 31 - __clz(starts & (0xffffffffu >> (31 - lane_of())));
  }
  std::uint32_t code() const { return sorted >> 5; }
  bool is_entry(const TreeColumn& column) const { return is_last && code() < column.n_bins; }
  ChannelSums read(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) const {
    const std::int64_t own = is_row ? value_of(w.values, element, channel) : 0;
    const std::int64_t value = __shfl_sync(all_lanes, own, static_cast<int>(sorted & 31));
    const std::int64_t known = code() < column.n_bins ? value : 0;
    const std::int64_t sum = WarpGroup::sum_before(known) + known;
    const std::int64_t before = __shfl_sync(all_lanes, sum, static_cast<int>((start - 1) & 31));
    const std::int64_t missing =
        column.has_missing ? warp_sum(code() == column.n_bins ? value : 0) : 0;
    return {start == 0 ? sum : sum - before, sum, missing};
  }
};

// Histogram of one feature in shared memory.
struct CodeTable {
  std::int32_t g[most_codes], h[most_codes];

  std::int64_t sum(std::uint32_t code) const { return pack(g[code], h[code]); }
  void clear(std::uint32_t code) { g[code] = h[code] = 0; }
  void add(std::uint32_t code, PackedSum value) {
    if (sum_g(value) != 0) atomicAdd(&g[code], sum_g(value));
    atomicAdd(&h[code], sum_h(value));
  }
};

// Rows of a medium node, added up by their codes by a block: a thread has a code.
struct TableSource {
  const Element* elements;
  std::uint32_t n;
  CodeTable* table;

  static void open(const TreeWork&, const TreeColumn&) {}
  static std::uint32_t code() { return threadIdx.x; }
  static bool is_entry(const TreeColumn& column) { return threadIdx.x < column.n_bins; }
  ChannelSums read(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) const {
    __syncthreads();
    table->clear(threadIdx.x);
    __syncthreads();
    const CodesOf codes = codes_of(w.codes, column, n);
    constexpr std::uint32_t ahead = 4;
    for (std::uint32_t first = threadIdx.x; first < n; first += ahead * BlockGroup::size) {
      Element e[ahead];
      std::uint32_t code[ahead];
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) {
        const std::uint32_t i = first + a * BlockGroup::size;
        e[a] = elements[i < n ? i : n - 1];
      }
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) code[a] = codes[row_of(e[a])];
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a)
        if (first + a * BlockGroup::size < n)
          table->add(code[a], value_of(w.values, e[a], channel));
    }
    __syncthreads();
    const std::int64_t own = is_entry(column) ? table->sum(threadIdx.x) : 0;
    const std::int64_t missing = column.has_missing ? table->sum(column.n_bins) : 0;
    return {own, BlockGroup::sum_before(own) + own, missing};
  }
};

// The same from the histograms of a large node.
struct HistogramSource {
  const std::int64_t* histograms;  // of the feature: [channels][most_codes]

  static void open(const TreeWork&, const TreeColumn&) {}
  static std::uint32_t code() { return threadIdx.x; }
  static bool is_entry(const TreeColumn& column) { return threadIdx.x < column.n_bins; }
  ChannelSums read(const TreeWork&, const TreeColumn& column, std::uint32_t channel) const {
    const std::int64_t* sums = histograms + std::uint64_t{channel} * most_codes;
    const std::int64_t own = is_entry(column) ? sums[threadIdx.x] : 0;
    return {own, BlockGroup::sum_before(own) + own, column.has_missing ? sums[column.n_bins] : 0};
  }
};
