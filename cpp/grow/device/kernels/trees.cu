// A level of a tree: splits of its nodes, rows of their children.
//
// A node of few rows is a warp's, one of more a block's: it searches the drawn features one after
// the other from the rows, divides the rows and appends the children to the next level. Rows of
// large nodes are divided into tiles, a block each; histograms of the drawn features are added up.
#include "grow/device/kernels/purity.cuh"
#include "grow/device/kernels/tree_search.cuh"
#include "grow/device/kernels/trees.cuh"

// The features of the nodes that may be split: those of the lowest hashes. A warp takes a node.
extern "C" __global__ void draw_features(TreeWork w, std::uint16_t* drawn) {
  ARBOOST_DYNAMIC_SHARED(std::uint64_t, room);
  const LevelCounts& counts = *w.level.counts;
  std::uint32_t at = blockIdx.x * (blockDim.x / 32) + warp_of(), kind = 0;
  while (kind < node_kinds && at >= counts.n_open[kind]) at -= counts.n_open[kind++];
  if (kind == node_kinds) return;
  const std::uint32_t node = w.level.open[kind * w.level.room + at];
  const std::uint64_t key =
      counter_hash(w.seed, Purpose::node_columns, w.number, w.level.nodes[node].path);
  std::uint64_t* hashes = room + warp_of() * w.n_features;
  for (std::uint32_t f = lane_of(); f < w.n_features; f += 32)
    hashes[f] = mix_bits(mix_bits(key + f));
  __syncwarp();
  std::uint16_t* out = drawn + static_cast<std::uint64_t>(node) * w.n_drawn;
  std::uint32_t n = 0;
  for (std::uint32_t first = 0; first < w.n_features; first += 32) {
    const std::uint32_t f = first + lane_of();
    std::uint32_t n_lower = w.n_drawn;
    if (f < w.n_features) {
      n_lower = 0;
      for (std::uint32_t other = 0; other < w.n_features; ++other)
        n_lower += hashes[other] < hashes[f] ? 1 : 0;
    }
    const std::uint32_t lanes = __ballot_sync(all_lanes, n_lower < w.n_drawn);
    if (lanes >> lane_of() & 1)
      out[n + __popc(lanes & ((1u << lane_of()) - 1))] = static_cast<std::uint16_t>(f);
    n += __popc(lanes);
  }
}

// Divides the rows of a node by its split, and appends its children.
template <class Group>
inline void divide(const TreeWork& w, std::uint32_t number, const TreeNode& node,
                   std::uint32_t* counts) {
  const std::uint32_t n = node.end - node.begin;
  const Element* from = w.from + node.begin;
  Element* to = w.to + node.begin;
  const RowTest test = test_of(w, node);
  Group::sync();
  if (Group::rank() < 2) counts[Group::rank()] = 0;
  Group::sync();
  for (std::uint32_t first = 0; first < n; first += Group::size) {
    const std::uint32_t i = first + Group::rank();
    const Element e = i < n ? from[i] : 0;
    const bool left = i < n && test(e);
    const std::uint32_t place = reserve(i < n, left, counts);
    if (i < n) to[left ? place : n - 1 - place] = e;
  }
  Group::sync();
  const std::uint32_t n_left = counts[0];
  const auto left_sum = [&](std::uint32_t channel) {
    std::int64_t sum = 0;
    for (std::uint32_t i = Group::rank(); i < n_left; i += Group::size)
      sum += value_of(w.values, to[i], channel);
    return Group::all(sum, [](std::int64_t a, std::int64_t b) { return a + b; });
  };
  std::int64_t* sums = w.level.left_sums + static_cast<std::uint64_t>(number) * w.gain.channels;
  for (std::uint32_t c = 0; c < w.values.channels; ++c) {
    const std::int64_t sum = left_sum(c);
    if (Group::rank() == 0) sums[c] = sum;
  }
  if (Group::rank() == 0) append_children(w, number, n_left, [=](int c) { return sums[c]; });
}

// Grows one node from its rows: nothing, or its split and its children.
template <class Group, bool logs>
inline void grow_node(const TreeWork& w, std::uint32_t number, CodeTable* table,
                      std::uint32_t* counts) {
  TreeNode node = w.level.nodes[number];
  const RowSource<Group> rows{w.from + node.begin, node.end - node.begin, table};
  if (is_pure<Group>(w.targets, rows.elements, rows.n)) return;
  const std::int64_t* sums = sums_of(w, w.level, number);
  const double score = score_of_node(w, sums);
  const double floor = score_floor(w.gain, sums, score, w.min_gain, true);
  const NodeBest best =
      search_rows<Group, logs>(w, rows, sums, node.path, floor, drawn_of(w, number));
  if (best.feature < 0) return;
  settle(w, score, sums, best, node);
  if (Group::rank() == 0) w.level.nodes[number] = node;
  divide<Group>(w, number, node, counts);
}

template <bool logs>
inline void grow_by_warps(const TreeWork& w) {
  __shared__ CodeTable tables[tree_warps];
  __shared__ std::uint32_t counts[tree_warps][2];
  const std::uint32_t at = blockIdx.x * tree_warps + warp_of();
  if (at >= w.level.counts->n_open[0]) return;
  grow_node<WarpGroup, logs>(w, w.level.open[at], &tables[warp_of()], counts[warp_of()]);
}

template <bool logs>
inline void grow_by_blocks(const TreeWork& w) {
  __shared__ CodeTable table;
  __shared__ std::uint32_t counts[2];
  grow_node<BlockGroup, logs>(w, w.level.open[w.level.room + blockIdx.x], &table, counts);
}

extern "C" __global__ void __launch_bounds__(tree_threads) grow_small(TreeWork w) {
  grow_by_warps<false>(w);
}
extern "C" __global__ void __launch_bounds__(tree_threads) grow_small_by_logs(TreeWork w) {
  grow_by_warps<true>(w);
}
extern "C" __global__ void __launch_bounds__(tree_threads) grow_medium(TreeWork w) {
  grow_by_blocks<false>(w);
}
extern "C" __global__ void __launch_bounds__(tree_threads) grow_medium_by_logs(TreeWork w) {
  grow_by_blocks<true>(w);
}
