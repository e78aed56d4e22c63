// Parts of the growth of a node: its features, its split, its children.
#pragma once

#include "grow/device/kernels/tree_search.cuh"
#include "grow/search/middle_bin.h"

constexpr std::uint32_t tree_threads = BlockGroup::size, tree_warps = tree_threads / 32;

inline const std::uint16_t* drawn_of(const TreeWork& w, std::uint32_t node) {
  return w.drawn == nullptr ? nullptr : w.drawn + static_cast<std::uint64_t>(node) * w.n_drawn;
}

inline std::int64_t* sums_of(const TreeWork& w, const TreeLevel& level, std::uint32_t node) {
  return level.sums + static_cast<std::uint64_t>(node) * w.gain.channels;
}

inline double score_of_node(const TreeWork& w, const std::int64_t* sums) {
  return node_score(w.gain, sums, [](double x) { return device::log_of(x); });
}

// Completes a split, as in TreePolicy::settle.
inline void settle(const TreeWork& w, double score, const std::int64_t* sums, const NodeBest& best,
                   TreeNode& node) {
  std::int64_t h = 0;
  for (int k = 0; k < w.gain.outputs; ++k) h += sum_h(sums[k]);
  node.gain = best.score > score ? best.score - score : 0.0;
  node.feature = best.feature;
  const auto f = static_cast<std::uint64_t>(best.feature);
  node.bin = w.cut_values != nullptr
                 ? best.bin
                 : middle_bin(w.edges + f * most_codes, w.columns[f].n_bins, best.bin, best.next);
  node.missing_left = best.missing_seen ? best.missing_left : (2 * best.left_h >= h ? 1 : 0);
}

// Lists a node of the next level for its search, unless it stays a leaf.
inline void open_node(const TreeWork& w, std::uint32_t number) {
  const TreeNode& node = w.next.nodes[number];
  const std::uint32_t n = node.end - node.begin;
  const std::int64_t* sums = sums_of(w, w.next, number);
  std::int64_t h = 0;
  for (int k = 0; k < w.gain.outputs; ++k) h += sum_h(sums[k]);
  if (w.limits.any == 0 || n < w.limits.min_rows || h < w.limits.min_h) return;
  const std::uint32_t kind = n <= warp_rows ? 0 : n <= block_rows ? 1 : large_kind;
  const std::uint32_t at = atomicAdd(&w.next.counts->n_open[kind], 1u);
  w.next.open[kind * w.next.room + at] = number;
  if (kind != large_kind) return;
  const std::uint32_t n_tiles = (n + rows_of_tile - 1) / rows_of_tile;
  RowTile* tiles = w.next.tiles + atomicAdd(&w.next.counts->n_tiles, n_tiles);
  for (std::uint32_t t = 0; t < n_tiles; ++t) tiles[t] = {at, t * rows_of_tile};
}

// Appends the children of a node to the next level; one thread does. left(c): sums of channel c.
template <class LeftSum>
inline void append_children(const TreeWork& w, std::uint32_t number, std::uint32_t n_left,
                            LeftSum left) {
  TreeNode& node = w.level.nodes[number];
  const std::uint32_t child = atomicAdd(&w.next.counts->n_nodes, 2u);
  node.left = child;
  const std::uint32_t middle = node.begin + n_left;
  w.next.nodes[child] = {-1.0, mix_bits(2 * node.path), node.begin, middle, 0, 0, 0, 0};
  w.next.nodes[child + 1] = {-1.0, mix_bits(2 * node.path + 1), middle, node.end, 0, 0, 0, 0};
  const std::int64_t* sums = sums_of(w, w.level, number);
  for (int c = 0; c < w.gain.channels; ++c) {
    const std::int64_t sum = left(c);
    sums_of(w, w.next, child)[c] = sum;
    sums_of(w, w.next, child + 1)[c] = sums[c] - sum;
  }
  open_node(w, child);
  open_node(w, child + 1);
}

// Test of rows at a node.
struct RowTest {
  CodesOf codes;
  std::uint32_t bin, missing_left;

  bool operator()(Element e) const {
    const std::uint32_t code = codes[row_of(e)];
    return code <= bin || code == missing_left;
  }
};

inline RowTest test_of(const TreeWork& w, const TreeNode& node) {
  const TreeColumn& column = w.columns[node.feature];
  return {codes_of(w.codes, column, node.end - node.begin), node.bin,
          node.missing_left != 0 && column.has_missing ? column.n_bins : 0xffffffffu};
}

// The places of a warp's rows on their sides: left ones follow `counts[0]`, right ones counts[1].
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
