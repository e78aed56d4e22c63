// Small nodes: a warp grows the whole subtree, with a row a lane.
#include "grow/device/kernels/forests/purity.cuh"
#include "grow/device/kernels/forests/trees.cuh"

// A node of a subtree whose rows are in a warp's lanes.
struct LaneNode {
  std::uint64_t path;
  std::uint32_t number, begin, end, depth;
};

// Shared memory of a warp.
struct LaneScratch {
  Element rows[warp_rows];
  LaneNode waiting[warp_rows + 1];
  EntryCuts cuts[warp_rows];
  std::uint8_t order[warp_rows];
  CodeSet levels;
};

// True if one target value is within the rounding of all rows' pairs, as in purity.cuh.
inline bool are_pure(const TargetPairs& targets, Element element, bool is_row) {
  const RowId row = row_of(element);
  const std::uint32_t position =
      is_row && targets.position_of_row != nullptr ? targets.position_of_row[row] : row;
#pragma unroll 1
  for (std::uint32_t k = 0; k < targets.outputs; ++k) {
    ValueBounds lane_bounds;
    if (is_row)
      lane_bounds =
          bounds_of(targets.pairs[position * targets.row_stride + k * targets.output_stride]);
    if (WarpGroup::all(lane_bounds, both).is_empty()) return false;
  }
  return true;
}

// A feature by its index in a node's order of features, which is the order of their hashes.
struct Ranked {
  std::uint64_t hash, feature;
};

inline Ranked lower_rank(const Ranked& a, const Ranked& b) {
  return b.hash < a.hash ? b : a;
}

// The best split of a node. All drawn features may be constant in it: then further ones are tried
// up to the first that is not, as in grow/split/random_cuts.cpp.
inline NodeBest search_lanes(const TreeWork& w, LaneSource source, const SearchRoom& room,
                             const std::int64_t* sums, std::uint64_t path, double score) {
  constexpr std::uint64_t none = ~std::uint64_t{0};
  NodeBest best{score_floor(w.gain, sums, score, w.min_gain, true), 0, 0, 0, -1, 0, 0};
  const std::uint64_t key = column_key(w, path);
  const bool draws = w.n_drawn < w.n_features;
  std::uint64_t last = 0;
  bool varies = false;
#pragma unroll 1
  for (std::uint32_t n = 0; n < w.n_drawn || (!varies && n < w.n_features); ++n) {
    std::uint32_t feature = n;
    if (draws) {
      Ranked lane_best{none, none};
#pragma unroll 1
      for (std::uint32_t f = lane_of(); f < w.n_features; f += 32) {
        const std::uint64_t hash = column_hash(key, f);
        if ((hash > last || n == 0) && hash <= lane_best.hash) lane_best = {hash, f};
      }
      const Ranked next = WarpGroup::all(lane_best, lower_rank);
      last = next.hash;
      feature = static_cast<std::uint32_t>(next.feature);
    }
    varies |= search_column(w, source, room, sums, path, feature, best);
  }
  return best;
}

// Splits one node of a subtree; returns the number of its left child, or 0 where it stays a leaf.
// `element` is the lane's row; `sums` are in shared memory.
inline std::uint32_t split_lanes(const TreeWork& w, const LaneNode& at, Element& element,
                                 LaneScratch& scratch, std::int64_t* sums, std::uint32_t& n_left) {
  const bool is_row = lane_of() >= at.begin && lane_of() < at.end;
#pragma unroll 1
  for (std::uint32_t c = 0; c < w.values.channels; ++c) {
    const std::int64_t sum = warp_sum(is_row ? value_of(w.values, element, c) : 0);
    if (lane_of() == 0) sums[c] = sum;
  }
  __syncwarp();
  if (!may_split(w, at.depth, at.end - at.begin, hessian_of(w, sums))) return 0;
  if (are_pure(w.targets, element, is_row)) return 0;
  const double score = score_of_node(w, sums);
  const SearchRoom room{scratch.cuts, scratch.order, &scratch.levels};
  const NodeBest best = search_lanes(w, {element, is_row}, room, sums, at.path, score);
  if (best.feature < 0) return 0;
  const std::uint32_t set = lane_of() == 0 ? keep_levels(w, best, scratch.levels) : 0;
  TreeNode node = w.nodes[at.number];
  settle(w, score, sums, best, __shfl_sync(all_lanes, set, 0), node);
  const bool left = is_row && test_of(w, node, at.end - at.begin)(element);
  const std::uint32_t lefts = __ballot_sync(all_lanes, left);
  const std::uint32_t rights = __ballot_sync(all_lanes, is_row && !left);
  const std::uint32_t below = (1u << lane_of()) - 1;
  n_left = __popc(lefts);
  const std::uint32_t offset = left ? __popc(lefts & below) : n_left + __popc(rights & below);
  if (is_row) scratch.rows[at.begin + offset] = element;
  __syncwarp();
  if (is_row) element = scratch.rows[lane_of()];
  std::uint32_t child = 0;
  if (lane_of() == 0) child = append_children(w, at.number, node, n_left, node.buffer);
  return __shfl_sync(all_lanes, child, 0);
}

// Grows the subtrees of the small nodes of all levels, a warp each. Dynamic shared memory: sums of
// each warp's node.
extern "C" __global__ void __launch_bounds__(tree_threads) grow_small(TreeWork w) {
  ARBOOST_DYNAMIC_SHARED(std::int64_t, all_sums);
  __shared__ LaneScratch scratch_of_warps[tree_warps];
  const std::uint32_t which = blockIdx.x * (blockDim.x / 32) + warp_of();
  if (which >= *w.n_small) return;
  const OpenNode open = w.small[which];
  const TreeNode root = w.nodes[open.number];
  const std::uint32_t n = root.end - root.begin;
  LaneScratch& scratch = scratch_of_warps[warp_of()];
  Element* rows = w.elements[root.buffer] + root.begin;
  Element element = lane_of() < n ? rows[lane_of()] : 0;
  if (lane_of() == 0) scratch.waiting[0] = {open.path, open.number, 0, n, open.depth};
  for (std::uint32_t n_waiting = 1; n_waiting > 0;) {
    __syncwarp();
    const LaneNode at = scratch.waiting[--n_waiting];
    __syncwarp();
    std::uint32_t n_left = 0;
    const std::uint32_t child =
        split_lanes(w, at, element, scratch, all_sums + warp_of() * w.values.channels, n_left);
    if (child == 0) continue;
    const std::uint32_t middle = at.begin + n_left;
    if (lane_of() == 0) {
      scratch.waiting[n_waiting] = {mix_bits(2 * at.path), child, at.begin, middle, at.depth + 1};
      scratch.waiting[n_waiting + 1] = {mix_bits(2 * at.path + 1), child + 1, middle, at.end,
                                        at.depth + 1};
    }
    n_waiting += 2;
  }
  if (lane_of() < n) rows[lane_of()] = element;
}

// Sums of the pairs [node][output][g, h] of the leaves of a tree; they begin as 0. A warp takes a
// leaf, or a tile of its rows. Grid: nodes, tiles.
extern "C" __global__ void __launch_bounds__(tree_threads)
    whole_leaf_sums(const TreeNode* nodes, std::uint32_t n_nodes, const Element* first_buffer,
                    const Element* second_buffer, PairRows pairs,
                    const std::uint32_t* number_of_row, std::int64_t* sums) {
  const std::uint32_t number = blockIdx.x * tree_warps + warp_of();
  if (number >= n_nodes) return;
  const TreeNode node = nodes[number];
  const std::uint64_t begin = node.begin + std::uint64_t{blockIdx.y} * tile_rows;
  if (node.gain >= 0 || begin >= node.end) return;
  const std::uint64_t end = min(std::uint64_t{node.end}, begin + tile_rows);
  const Element* elements = node.buffer == 0 ? first_buffer : second_buffer;
#pragma unroll 1
  for (std::uint32_t k = 0; k < pairs.outputs; ++k) {
    std::int64_t g = 0, h = 0;
    for (std::uint64_t i = begin + lane_of(); i < end; i += 32) {
      const RowId row = row_of(elements[i]);
      const std::uint32_t at = number_of_row == nullptr ? row : number_of_row[row];
      const FixedPair pair = pairs.pairs[at * pairs.row_stride + k * pairs.output_stride];
      g += pair.g;
      h += pair.h;
    }
    g = warp_sum(g);
    h = warp_sum(h);
    std::int64_t* sum = sums + (std::uint64_t{number} * pairs.outputs + k) * 2;
    if (lane_of() == 0) {
      add_to(sum, g);
      add_to(sum + 1, h);
    }
  }
}
