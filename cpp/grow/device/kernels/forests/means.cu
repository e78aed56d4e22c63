// Leaves of a grown tree: those of the rows outside of its sample, and sums of targets, which are
// added up in the order of the table, as on the host: rows are sorted by leaf first.
#include "grow/device/kernels/forests/trees.cuh"
#include "grow/device/records/mean_records.h"

constexpr std::uint32_t sort_warps = BlockGroup::n_warps;
static_assert(BlockGroup::size == n_digits);  // a thread a digit

inline RowId row_of_position(const RowId* table_rows, std::uint32_t position) {
  return table_rows == nullptr ? position : table_rows[position];
}

// Leaves of a tree that has grown as a whole -> the leaf of each of its rows. A warp takes a leaf,
// or a tile of its rows. Grid: nodes, tiles.
extern "C" __global__ void __launch_bounds__(BlockGroup::size)
    note_leaves(const TreeNode* nodes, std::uint32_t n_nodes, const Element* first_buffer,
                const Element* second_buffer, std::uint32_t* leaf_of_row) {
  const std::uint32_t number = blockIdx.x * sort_warps + warp_of();
  if (number >= n_nodes) return;
  const TreeNode node = nodes[number];
  const std::uint64_t begin = node.begin + std::uint64_t{blockIdx.y} * tile_rows;
  if (node.gain >= 0 || begin >= node.end) return;
  const std::uint64_t end = min(std::uint64_t{node.end}, begin + tile_rows);
  const Element* elements = node.buffer == 0 ? first_buffer : second_buffer;
  for (std::uint64_t i = begin + lane_of(); i < end; i += 32)
    leaf_of_row[row_of(elements[i])] = number;
}

// Rows that a tree was not grown on -> their leaves, by position; other rows have none.
extern "C" __global__ void walk_outside(TreeWork w, const std::uint32_t* number_of_row,
                                        const RowId* table_rows, std::uint32_t n,
                                        std::uint32_t* leaf_of_position) {
  const std::uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
  if (position >= n) return;
  const RowId row = row_of_position(table_rows, position);
  std::uint32_t at = no_number;
  if (number_of_row[row] == no_number) {
    at = 0;
    for (TreeNode node = w.nodes[0]; node.gain >= 0; node = w.nodes[at])
      at = node.left + (test_of(w, node, 1)(row) ? 0 : 1);
  }
  leaf_of_position[position] = at;
}

// The same of rows whose leaves are known.
extern "C" __global__ void take_outside(const std::uint32_t* leaf_of_row,
                                        const std::uint32_t* number_of_row, const RowId* table_rows,
                                        std::uint32_t n, std::uint32_t* leaf_of_position) {
  const std::uint32_t position = blockIdx.x * blockDim.x + threadIdx.x;
  if (position >= n) return;
  const RowId row = row_of_position(table_rows, position);
  leaf_of_position[position] = number_of_row[row] == no_number ? leaf_of_row[row] : no_number;
}

// Item i of a pass; false: there is none.
inline bool item_at(const LeafSort& sort, std::uint32_t i, Element& item) {
  if (i >= sort.n) return false;
  if (sort.from != nullptr) {
    item = sort.from[i];
    return true;
  }
  const RowId row = row_of_position(sort.table_rows, i);
  if (sort.number_of_row != nullptr && sort.number_of_row[row] == no_number) return false;
  item = Element{sort.leaf_of_row[row]} << 32 | i;
  return true;
}

// Calls use(is_item, item, digit) for the tile of a block, a part of it a warp, by all lanes.
template <class Use>
inline void each_item(const LeafSort& sort, Use use) {
  constexpr std::uint32_t rows_of_warp = tile_rows / sort_warps;
  const std::uint32_t first = blockIdx.x * tile_rows + warp_of() * rows_of_warp;
#pragma unroll 1
  for (std::uint32_t i = first + lane_of(); i < first + rows_of_warp; i += 32) {
    Element item = 0;
    const bool is_item = item_at(sort, i, item);
    use(is_item, item, static_cast<std::uint32_t>(item >> sort.shift) % n_digits);
  }
}

// Counts of the digits in each tile. Grid: tiles.
extern "C" __global__ void __launch_bounds__(BlockGroup::size) count_leaf_digits(LeafSort sort) {
  __shared__ std::uint32_t counts[n_digits];
  counts[threadIdx.x] = 0;
  __syncthreads();
  each_item(sort, [&](bool is_item, Element, std::uint32_t digit) {
    if (is_item) atomicAdd(&counts[digit], 1u);
  });
  __syncthreads();
  sort.counts[threadIdx.x * gridDim.x + blockIdx.x] = counts[threadIdx.x];
}

// Counts of a digit by tile -> sums over the tiles before, and over all. Grid: digits.
extern "C" __global__ void __launch_bounds__(BlockGroup::size)
    add_leaf_digits(LeafSort sort, std::uint32_t n_tiles) {
  std::uint32_t* counts = sort.counts + blockIdx.x * n_tiles;
  std::int64_t before = 0;
  for (std::uint32_t first = 0; first < n_tiles; first += BlockGroup::size) {
    const std::uint32_t tile = first + threadIdx.x;
    const std::int64_t count = tile < n_tiles ? counts[tile] : 0;
    const std::int64_t sum = before + BlockGroup::sum_before(count);
    if (tile < n_tiles) counts[tile] = static_cast<std::uint32_t>(sum);
    before += BlockGroup::all(count, [](std::int64_t a, std::int64_t b) { return a + b; });
  }
  if (threadIdx.x == 0) sort.totals[blockIdx.x] = static_cast<std::uint32_t>(before);
}

// Moves the items of each tile to their places. Grid: tiles.
extern "C" __global__ void __launch_bounds__(BlockGroup::size) move_rows(LeafSort sort) {
  __shared__ std::uint32_t next[sort_warps][n_digits];
  for (std::uint32_t warp = 0; warp < sort_warps; ++warp) next[warp][threadIdx.x] = 0;
  __syncthreads();
  each_item(sort, [&](bool is_item, Element, std::uint32_t digit) {
    if (is_item) atomicAdd(&next[warp_of()][digit], 1u);
  });
  __syncthreads();
  auto at = static_cast<std::uint32_t>(BlockGroup::sum_before(sort.totals[threadIdx.x])) +
            sort.counts[threadIdx.x * gridDim.x + blockIdx.x];
  for (std::uint32_t warp = 0; warp < sort_warps; ++warp) {
    const std::uint32_t count = next[warp][threadIdx.x];
    next[warp][threadIdx.x] = at;
    at += count;
  }
  __syncthreads();
  each_item(sort, [&](bool is_item, Element item, std::uint32_t digit) {
    const std::uint32_t equal = __match_any_sync(all_lanes, is_item ? digit : n_digits);
    __syncwarp();  // all counts of the items before
    const std::uint32_t place = next[warp_of()][digit] + __popc(equal & ((1u << lane_of()) - 1));
    __syncwarp();
    if (!is_item) return;
    sort.to[place] = item;
    if (equal >> lane_of() == 1) next[warp_of()][digit] = place + 1;  // the last of them
  });
}

// The ranges of leaves in sorted rows; they begin as 0.
extern "C" __global__ void find_ranges(const Element* sorted, std::uint32_t n, LeafRange* ranges) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::uint64_t leaf = sorted[i] >> 32;
  if (i == 0 || sorted[i - 1] >> 32 != leaf) ranges[leaf].begin = i;
  if (i == n - 1 || sorted[i + 1] >> 32 != leaf) ranges[leaf].end = i + 1;
}

// Weight and weighted target of a row in two of the sums of its leaf.
inline double2 terms_of(const TargetColumns& target, std::uint32_t position, std::uint32_t first) {
  const RowId row = row_of_position(target.table_rows, position);
  const std::uint32_t number = target.number_of_row == nullptr ? row : target.number_of_row[row];
  const double weight = (target.weight == nullptr ? 1.0 : target.weight[position]) *
                        (target.counts == nullptr ? 1.0 : double{target.counts[number]});
  const double* y = target.y + std::uint64_t{position} * target.width;
  return {first == 0 ? weight : weight * y[first - 1],
          first < target.width ? weight * y[first] : 0.0};
}

// Sums [leaf][weight, weighted targets]. A warp reads the rows of a leaf together, and adds two of
// the sums at a time, row by row.
extern "C" __global__ void __launch_bounds__(BlockGroup::size)
    sum_targets(const Element* sorted, const LeafRange* ranges, std::uint32_t n_leaves,
                TargetColumns target, double* sums) {
  const std::uint32_t leaf = blockIdx.x * sort_warps + warp_of();
  if (leaf >= n_leaves) return;
  const LeafRange range = ranges[leaf];
  double* out = sums + std::uint64_t{leaf} * (1 + target.width);
#pragma unroll 1
  for (std::uint32_t first = 0; first <= target.width; first += 2) {
    const auto terms_at = [&](std::uint64_t i) {
      return i < range.end ? terms_of(target, row_of(sorted[i]), first) : double2{0, 0};
    };
    double2 sum{0, 0}, next = terms_at(range.begin + lane_of());
#pragma unroll 1
    for (std::uint64_t begin = range.begin; begin < range.end; begin += 32) {
      const double2 terms = next;
      next = terms_at(begin + 32 + lane_of());  // while these are added
      const auto n = static_cast<int>(min(std::uint64_t{32}, range.end - begin));
      for (int lane = 0; lane < n; ++lane) {
        sum.x += __shfl_sync(all_lanes, terms.x, lane);
        sum.y += __shfl_sync(all_lanes, terms.y, lane);
      }
    }
    if (lane_of() != 0) continue;
    out[first] = sum.x;
    if (first < target.width) out[first + 1] = sum.y;
  }
}
