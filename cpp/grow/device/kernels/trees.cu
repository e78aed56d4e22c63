// Small and medium nodes of a level: no histogram is kept, each node is searched from its rows.
#include "grow/device/kernels/purity.cuh"
#include "grow/device/kernels/trees.cuh"

// A node of a subtree whose rows are in a warp's lanes.
struct LaneNode {
  std::uint64_t path;
  std::uint32_t number, begin, end, depth;
};

// True if one target value is within the rounding of all rows' pairs, as in purity.cuh.
inline bool are_pure(const TargetPairs& targets, Element element, bool is_row) {
  const RowId row = row_of(element);
  const std::uint32_t position =
      is_row && targets.position_of_row != nullptr ? targets.position_of_row[row] : row;
#pragma unroll 1
  for (std::uint32_t k = 0; k < targets.outputs; ++k) {
    ValueBounds own;
    if (is_row)
      own = bounds_of(targets.pairs[position * targets.row_stride + k * targets.output_stride]);
    if (WarpGroup::all(own, both).is_empty()) return false;
  }
  return true;
}

// Splits one node of a subtree; returns the number of its left child, or 0 where it stays a leaf.
// `element` is the lane's row, `rows` and `sums` are shared by the warp.
inline std::uint32_t split_lanes(const TreeWork& w, const LaneNode& at, Element& element,
                                 Element* rows, std::int64_t* sums, std::uint32_t& n_left) {
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
  NodeBest best{score_floor(w.gain, sums, score, w.min_gain, true), 0, 0, 0, -1, 0, 0};
  LaneSource source{element, is_row};
  search_node<WarpGroup>(w, source, sums, at.path, 0, 0, best);
  if (best.feature < 0) return 0;
  TreeNode node = w.nodes[at.number];
  settle(w, score, sums, best, node);
  const bool left = is_row && test_of(w, node)(element);
  const std::uint32_t lefts = __ballot_sync(all_lanes, left);
  const std::uint32_t rights = __ballot_sync(all_lanes, is_row && !left);
  const std::uint32_t below = (1u << lane_of()) - 1;
  n_left = __popc(lefts);
  if (is_row)
    rows[at.begin + (left ? __popc(lefts & below) : n_left + __popc(rights & below))] = element;
  __syncwarp();
  if (is_row) element = rows[lane_of()];
  std::uint32_t child = 0;
  if (lane_of() == 0) child = append_children(w, at.number, node, n_left, w.buffer);
  return __shfl_sync(all_lanes, child, 0);
}

// Grows whole subtrees of small nodes, a warp each. Dynamic shared memory: sums of each warp's
// node.
extern "C" __global__ void __launch_bounds__(tree_threads) grow_small(TreeWork w) {
  ARBOOST_DYNAMIC_SHARED(std::int64_t, all_sums);
  __shared__ Element all_rows[tree_warps][warp_rows];
  __shared__ LaneNode nodes[tree_warps][warp_rows + 1];
  const std::uint32_t which = blockIdx.x * (blockDim.x / 32) + warp_of();
  if (which >= w.level.counts->n_open[small_kind]) return;
  const OpenNode open = open_node(w.level, small_kind, which);
  const TreeNode root = w.nodes[open.number];
  const std::uint32_t n = root.end - root.begin;
  LaneNode* waiting = nodes[warp_of()];
  Element element = lane_of() < n ? w.from[root.begin + lane_of()] : 0;
  if (lane_of() == 0) waiting[0] = {open.path, open.number, 0, n, w.depth};
  for (std::uint32_t n_waiting = 1; n_waiting > 0;) {
    __syncwarp();
    const LaneNode at = waiting[--n_waiting];
    __syncwarp();
    std::uint32_t n_left = 0;
    const std::uint32_t child = split_lanes(w, at, element, all_rows[warp_of()],
                                            all_sums + warp_of() * w.values.channels, n_left);
    if (child == 0) continue;
    const std::uint32_t middle = at.begin + n_left;
    if (lane_of() == 0) {
      waiting[n_waiting] = {mix_bits(2 * at.path), child, at.begin, middle, at.depth + 1};
      waiting[n_waiting + 1] = {mix_bits(2 * at.path + 1), child + 1, middle, at.end, at.depth + 1};
    }
    n_waiting += 2;
  }
  if (lane_of() < n) w.from[root.begin + lane_of()] = element;
}

// Splits medium nodes, a block each.
extern "C" __global__ void __launch_bounds__(tree_threads) grow_medium(TreeWork w) {
  __shared__ CodeTable table;
  __shared__ std::uint32_t counts[2];
  if (blockIdx.x >= w.level.counts->n_open[medium_kind]) return;
  const OpenNode open = open_node(w.level, medium_kind, blockIdx.x);
  std::int64_t* sums = open_sums(w, w.level, medium_kind, blockIdx.x);
  TreeNode node = w.nodes[open.number];
  const std::uint32_t n = node.end - node.begin;
  const Element* from = w.from + node.begin;
  if (is_pure<BlockGroup>(w.targets, from, n)) return;
  const double score = score_of_node(w, sums);
  NodeBest best{score_floor(w.gain, sums, score, w.min_gain, true), 0, 0, 0, -1, 0, 0};
  TableSource source{from, n, &table};
  search_node<BlockGroup>(w, source, sums, open.path, 0, 0, best);
  if (best.feature < 0) return;
  settle(w, score, sums, best, node);
  std::int64_t* left_sums = w.left_sums + std::uint64_t{blockIdx.x} * w.values.channels;
  if (threadIdx.x < 2) counts[threadIdx.x] = 0;
  for (std::uint32_t c = threadIdx.x; c < w.values.channels; c += tree_threads) left_sums[c] = 0;
  __syncthreads();
  divide_rows(w, node, 0, n, counts, counts + 1, left_sums);
  __threadfence();
  __syncthreads();
  const volatile std::int64_t* final_sums = left_sums;
  if (threadIdx.x == 0)
    finish_split(w, open, node, counts[0], sums, [=](int c) { return final_sums[c]; });
}
