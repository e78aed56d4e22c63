// Sums of a node's rows by the codes of a feature, for a warp: entries in the order of the codes,
// 32 at a time.
#pragma once

#include "grow/device/kernels/forests/groups.cuh"
#include "grow/device/kernels/rows.cuh"
#include "grow/device/records/device_tree_records.h"

// One channel at an entry: sums of its code, and of the codes up to it.
struct EntrySums {
  std::int64_t of_code, up_to;
};

// Sums at the entries after those that add up to `before`, and those up to the last of them.
inline EntrySums next_sums(std::int64_t of_code, std::int64_t& before) {
  const std::int64_t up_to = before + WarpGroup::sum_before(of_code) + of_code;
  before = __shfl_sync(all_lanes, up_to, 31);
  return {of_code, up_to};
}

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
  static constexpr std::uint32_t n_chunks = 1;

  Element element;
  bool is_row;
  std::uint32_t sorted = 0, start = 0;  // code and lane of a row; first lane of its code
  bool is_last = false;
  std::int64_t known = 0;  // value of the sorted row, where its code is not missing

  void open(const TreeWork& w, const TreeColumn& column) {
    constexpr std::uint32_t no_row = most_codes;
    const CodesOf codes{w.codes.by_row + column.store, w.codes.row_stride, column.own_codes};
    const std::uint32_t row_code = is_row ? codes[row_of(element)] : no_row;
    sorted = row_code << 5 | lane_of();
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
  std::uint32_t code(std::uint32_t) const { return sorted >> 5; }
  bool is_entry(const TreeColumn& column, std::uint32_t) const {
    return is_last && sorted >> 5 < column.n_bins;
  }
  // Reads a channel; returns the sum of missing values.
  std::int64_t read(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) {
    const std::int64_t row_value = is_row ? value_of(w.values, element, channel) : 0;
    const std::int64_t value = __shfl_sync(all_lanes, row_value, static_cast<int>(sorted & 31));
    known = sorted >> 5 < column.n_bins ? value : 0;
    return column.has_missing ? warp_sum(sorted >> 5 == column.n_bins ? value : 0) : 0;
  }
  EntrySums sums(const TreeColumn&, std::uint32_t, std::int64_t&) const {
    const std::int64_t sum = WarpGroup::sum_before(known) + known;
    const std::int64_t before = __shfl_sync(all_lanes, sum, static_cast<int>((start - 1) & 31));
    return {start == 0 ? sum : sum - before, sum};
  }
  // Levels of a category, missing included, at the entries of all codes.
  bool is_level(const TreeColumn&, std::uint32_t) const {
    return is_last && sorted >> 5 < most_codes;
  }
  void read_levels(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) {
    const std::int64_t row_value = is_row ? value_of(w.values, element, channel) : 0;
    known = __shfl_sync(all_lanes, row_value, static_cast<int>(sorted & 31));
    std::int64_t before = 0;
    known = sums(column, 0, before).of_code;
  }
  std::int64_t level_sum(std::uint32_t entry) const {
    return __shfl_sync(all_lanes, known, static_cast<int>(entry));
  }
  std::uint32_t level_code(std::uint32_t entry) const {
    return __shfl_sync(all_lanes, sorted, static_cast<int>(entry)) >> 5;
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

// Rows of a larger node, added up by their codes in a warp's table, or the histograms of a node.
struct TableSource {
  static constexpr std::uint32_t n_chunks = most_codes / 32;

  const Element* elements;
  std::uint32_t n;
  CodeTable* table;
  const std::int64_t* histograms;  // of the feature, [channels][most_codes]; null: of the rows
  const std::int64_t* read_one = nullptr;

  static void open(const TreeWork&, const TreeColumn&) {}
  static std::uint32_t code(std::uint32_t chunk) { return chunk * 32 + lane_of(); }
  static bool is_entry(const TreeColumn& column, std::uint32_t chunk) {
    return code(chunk) < column.n_bins;
  }
  std::int64_t sum(std::uint32_t code) const {
    return histograms == nullptr ? table->sum(code) : read_one[code];
  }
  std::int64_t read(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) {
    if (histograms == nullptr)
      add_rows(w, column, channel);
    else
      read_one = histograms + std::uint64_t{channel} * most_codes;
    return column.has_missing ? sum(column.n_bins) : 0;
  }
  EntrySums sums(const TreeColumn& column, std::uint32_t chunk, std::int64_t& before) const {
    return next_sums(is_entry(column, chunk) ? sum(code(chunk)) : 0, before);
  }
  static bool is_level(const TreeColumn& column, std::uint32_t chunk) {
    return code(chunk) < column.n_bins + (column.has_missing ? 1 : 0);
  }
  void read_levels(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) {
    read(w, column, channel);
  }
  std::int64_t level_sum(std::uint32_t entry) const { return sum(entry); }
  static std::uint32_t level_code(std::uint32_t entry) { return entry; }
  void add_rows(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) const {
    __syncwarp();
    for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) table->clear(code(chunk));
    __syncwarp();
    const CodesOf codes = codes_of(w.codes, column, n);
    constexpr std::uint32_t ahead = 4;
#pragma unroll 1
    for (std::uint32_t first = lane_of(); first < n; first += ahead * 32) {
      Element e[ahead];
      std::uint32_t row_codes[ahead];
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) {
        const std::uint32_t i = first + a * 32;
        e[a] = elements[i < n ? i : n - 1];
      }
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) row_codes[a] = codes[row_of(e[a])];
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a)
        if (first + a * 32 < n) table->add(row_codes[a], value_of(w.values, e[a], channel));
    }
    __syncwarp();
  }
};
