// Parts of the growth of a node: its split, its rows, its children.
#pragma once

#include "grow/device/kernels/forests/level_search.cuh"
#include "grow/search/middle_bin.h"

constexpr std::uint32_t tree_threads = BlockGroup::size, tree_warps = tree_threads / 32;

// Shared memory of a warp that searches a feature.
struct SearchScratch {
  CodeTable table;
  EntryCuts cuts[most_codes];
  std::uint8_t order[most_codes];
  CodeSet levels;

  SearchRoom room() { return {cuts, order, &levels}; }
};
static_assert(sizeof(SearchScratch) == search_room_bytes);

inline OpenNode& open_node(const TreeLevel& level, std::uint32_t kind, std::uint32_t at) {
  return level.open[kind * level.capacity + at];
}
inline std::int64_t* open_sums(const TreeWork& w, const TreeLevel& level, std::uint32_t kind,
                               std::uint32_t at) {
  return level.sums + (std::uint64_t{kind} * level.capacity + at) * w.values.channels;
}

// One copy: compilation takes long.
__attribute__((noinline)) inline double score_of_node(const TreeWork& w, const std::int64_t* sums) {
  return node_score(w.gain, sums, log_at);
}
inline std::int64_t hessian_of(const TreeWork& w, const std::int64_t* sums) {
  std::int64_t h = 0;
#pragma unroll 1
  for (int k = 0; k < w.gain.outputs; ++k) h += sum_h(sums[k]);
  return h;
}
inline bool may_split(const TreeWork& w, std::uint32_t depth, std::uint32_t n, std::int64_t h) {
  return depth < w.limits.max_depth && n >= w.limits.min_rows && h >= w.limits.min_h;
}

// Completes a split, as in TreePolicy::settle. `set`: its number.
inline void settle(const TreeWork& w, double score, const std::int64_t* sums, const NodeBest& best,
                   std::uint32_t set, TreeNode& node) {
  node.gain = best.score > score ? best.score - score : 0.0;
  node.feature = best.feature;
  node.set = set;
  if (set != 0) {  // it covers all codes
    node.bin = 0;
    node.missing_left = static_cast<std::uint8_t>(best.missing_left);
    return;
  }
  const auto f = static_cast<std::uint64_t>(best.feature);
  const std::uint32_t bin =
      w.cut_values != nullptr
          ? best.bin
          : middle_bin(w.edges + f * most_codes, w.columns[f].n_bins, best.bin, best.next);
  node.bin = static_cast<std::uint16_t>(bin);
  const bool is_heavier = 2 * best.left_h >= hessian_of(w, sums);
  node.missing_left = (best.missing_seen ? best.missing_left != 0 : is_heavier) ? 1 : 0;
}

// Keeps the levels of a split of a category; returns the number of the set. By one thread.
inline std::uint32_t keep_levels(const TreeWork& w, const NodeBest& best, const CodeSet& levels) {
  if (!w.columns[best.feature].is_category) return 0;
  const std::uint32_t at = atomicAdd(w.n_sets, 1u);
  w.sets[at] = levels;
  return at + 1;
}

// Test of rows at a node.
struct RowTest {
  CodesOf codes;
  std::uint32_t bin, missing_left;
  const CodeSet* levels;  // null: by bin

  bool operator()(Element e) const {
    const std::uint32_t code = codes[row_of(e)];
    if (levels != nullptr) return holds(*levels, code);
    return code <= bin || code == missing_left;
  }
};

// Of about n_rows rows.
inline RowTest test_of(const TreeWork& w, const TreeNode& node, std::uint32_t n_rows) {
  const TreeColumn& column = w.columns[node.feature];
  return {codes_of(w.codes, column, n_rows), node.bin,
          node.missing_left != 0 && column.has_missing ? column.n_bins : no_candidate,
          node.set == 0 ? nullptr : w.sets + (node.set - 1)};
}

// The positions of a warp's rows on their sides: left ones follow counts[0], right ones counts[1].
inline std::uint32_t reserve(bool is_row, bool left, std::uint32_t* counts) {
  const std::uint32_t rows = __ballot_sync(all_lanes, is_row);
  const std::uint32_t lefts = __ballot_sync(all_lanes, is_row && left);
  std::uint32_t base = 0;  // of the left side in lane 0, of the right one in lane 1
  if (lane_of() < 2)
    base = atomicAdd(counts + lane_of(), __popc(lane_of() == 0 ? lefts : rows & ~lefts));
  const std::uint32_t of_left = __shfl_sync(all_lanes, base, 0);
  const std::uint32_t of_right = __shfl_sync(all_lanes, base, 1);
  const std::uint32_t below = (1u << lane_of()) - 1;
  return left ? of_left + __popc(lefts & below) : of_right + __popc(rows & ~lefts & below);
}

// Sends rows [first, end) of a node to their sides: left ones from the front of its range, right
// ones from its back; adds their numbers, and the sums of the left ones. By a block.
inline void divide_rows(const TreeWork& w, const TreeNode& node, std::uint32_t first,
                        std::uint32_t end, std::uint32_t* n_left, std::uint32_t* n_right,
                        std::int64_t* left_sums) {
  __shared__ std::uint32_t counts[2], bases[2];
  constexpr std::uint32_t n_rounds = 4;
  const std::uint32_t n = node.end - node.begin;
  const Element* from = w.elements[w.buffer] + node.begin;
  Element* to = w.elements[1 - w.buffer] + node.begin;
  const RowTest test = test_of(w, node, n);
#pragma unroll 1
  for (; first < end; first += n_rounds * tree_threads) {
    Element rows[n_rounds];
    std::uint32_t places[n_rounds];
    std::uint32_t lefts = 0;  // rounds whose row goes left, by bit
    if (threadIdx.x < 2) counts[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (std::uint32_t round = 0; round < n_rounds; ++round) {
      const std::uint32_t i = first + round * tree_threads + threadIdx.x;
      rows[round] = from[i < end ? i : end - 1];
    }
#pragma unroll
    for (std::uint32_t round = 0; round < n_rounds; ++round) {
      const std::uint32_t i = first + round * tree_threads + threadIdx.x;
      if (test(rows[round]) && i < end) lefts |= 1u << round;
    }
#pragma unroll
    for (std::uint32_t round = 0; round < n_rounds; ++round) {
      const std::uint32_t i = first + round * tree_threads + threadIdx.x;
      places[round] = reserve(i < end, lefts >> round & 1, counts);
    }
    __syncthreads();
    if (threadIdx.x < 2)
      bases[threadIdx.x] = atomicAdd(threadIdx.x == 0 ? n_left : n_right, counts[threadIdx.x]);
    __syncthreads();
#pragma unroll
    for (std::uint32_t round = 0; round < n_rounds; ++round) {
      const std::uint32_t i = first + round * tree_threads + threadIdx.x;
      const bool left = lefts >> round & 1;
      const std::uint32_t position = bases[left ? 0 : 1] + places[round];
      if (i < end) to[left ? position : n - 1 - position] = rows[round];
    }
#pragma unroll 1
    for (std::uint32_t c = 0; c < w.values.channels; ++c) {
      std::int64_t sum = 0;
#pragma unroll
      for (std::uint32_t round = 0; round < n_rounds; ++round)
        if (lefts >> round & 1) sum += value_of(w.values, rows[round], c);
      sum = warp_sum(sum);
      if (lane_of() == 0 && sum != 0) add_to(left_sums + c, sum);
    }
  }
}

// Appends the two children of a node, as leaves, and returns the number of the left one.
inline std::uint32_t append_children(const TreeWork& w, std::uint32_t number, TreeNode node,
                                     std::uint32_t n_left, std::uint32_t buffer) {
  const std::uint32_t child = atomicAdd(w.n_nodes, 2u), middle = node.begin + n_left;
  node.left = child;
  w.nodes[number] = node;
  const auto in = static_cast<std::uint8_t>(buffer);
  w.nodes[child] = {-1.0, node.begin, middle, 0, 0, 0, 0, in, 0};
  w.nodes[child + 1] = {-1.0, middle, node.end, 0, 0, 0, 0, in, 0};
  return child;
}

// Lists a child of n rows for the next level where it may be split; sum(c): its sums.
template <class Sum>
inline void list_child(const TreeWork& w, std::uint32_t number, std::uint32_t n, std::uint64_t path,
                       Sum sum) {
  std::int64_t h = 0;
#pragma unroll 1
  for (int k = 0; k < w.gain.outputs; ++k) h += sum_h(sum(k));
  if (!may_split(w, w.depth + 1, n, h)) return;
  if (n <= warp_rows) {
    w.small[atomicAdd(w.n_small, 1u)] = {path, number, w.depth + 1};
    return;
  }
  const std::uint32_t kind = n <= block_rows ? medium_kind : large_kind;
  const std::uint32_t at = atomicAdd(&w.next.counts->n_open[kind], 1u);
  open_node(w.next, kind, at) = {path, number, w.depth + 1};
  std::int64_t* sums = open_sums(w, w.next, kind, at);
#pragma unroll 1
  for (int c = 0; c < w.gain.channels; ++c) sums[c] = sum(c);
  if (kind != large_kind) return;
  const std::uint32_t n_tiles = (n + rows_of_tile - 1) / rows_of_tile;
  RowTile* tiles = w.next.tiles + atomicAdd(&w.next.counts->n_tiles, n_tiles);
#pragma unroll 1
  for (std::uint32_t t = 0; t < n_tiles; ++t) tiles[t] = {at, t * rows_of_tile};
}

// The end of a split: children, and the next level. One thread does.
template <class LeftSum>
inline void finish_split(const TreeWork& w, const OpenNode& open, const TreeNode& node,
                         std::uint32_t n_left, const std::int64_t* sums, LeftSum left) {
  const std::uint32_t child = append_children(w, open.number, node, n_left, 1 - w.buffer);
  list_child(w, child, n_left, mix_bits(2 * open.path), left);
  list_child(w, child + 1, node.end - node.begin - n_left, mix_bits(2 * open.path + 1),
             [=](int c) { return sums[c] - left(c); });
}
