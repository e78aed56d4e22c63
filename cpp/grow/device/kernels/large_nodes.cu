// Large nodes of a level: histograms by tiles of their rows, searches by features, division by
// tiles.
#include "grow/device/kernels/purity.cuh"
#include "grow/device/kernels/tree_search.cuh"
#include "grow/device/kernels/trees.cuh"

inline std::uint32_t large_node(const TreeWork& w, std::uint32_t open) {
  return w.level.open[large_kind * w.level.room + open];
}

inline std::int64_t* histograms_of(const TreeWork& w, std::uint32_t open) {
  return w.histograms + static_cast<std::uint64_t>(open - w.first_large) * w.n_drawn *
                            w.gain.channels * most_codes;
}

inline bool is_of_launch(const TreeWork& w, std::uint32_t open) {
  return open >= w.first_large && open < w.first_large + w.n_large;
}

// Adds the rows of tiles to the histograms of some features. Grid: tiles, groups of features,
// channels.
extern "C" __global__ void __launch_bounds__(tree_threads) tile_histograms(TreeWork w) {
  __shared__ CodeTable tables[features_of_block];
  const RowTile tile = w.level.tiles[blockIdx.x];
  if (!is_of_launch(w, tile.open)) return;
  const std::uint32_t number = large_node(w, tile.open), channel = blockIdx.z;
  const TreeNode& node = w.level.nodes[number];
  const std::uint32_t n = node.end - node.begin, end = min(n, tile.first + rows_of_tile);
  const Element* elements = w.from + node.begin;
  const std::uint32_t first_feature = blockIdx.y * features_of_block;
  const std::uint32_t n_features = min(features_of_block, w.n_drawn - first_feature);
  const std::uint16_t* drawn = drawn_of(w, number);
  CodesOf codes[features_of_block];
  for (std::uint32_t q = 0; q < features_of_block; ++q) {
    const std::uint32_t j = first_feature + min(q, n_features - 1);
    codes[q] = codes_of(w.codes, w.columns[drawn == nullptr ? j : drawn[j]], n);
    for (std::uint32_t slot = threadIdx.x; slot < CodeTable::size; slot += tree_threads)
      tables[q].g[slot] = tables[q].h[slot] = 0;
  }
  __syncthreads();
  for (std::uint32_t i = tile.first + threadIdx.x; i < end; i += tree_threads) {
    const Element e = elements[i];
    const PackedSum value = value_of(w.values, e, channel);
    std::uint32_t code[features_of_block];
#pragma unroll
    for (std::uint32_t q = 0; q < features_of_block; ++q) code[q] = codes[q][row_of(e)];
#pragma unroll
    for (std::uint32_t q = 0; q < features_of_block; ++q) {
      if (q >= n_features) continue;
      const std::uint32_t slot = CodeTable::slot(code[q]);
      if (sum_g(value) != 0) atomicAdd(&tables[q].g[slot], sum_g(value));
      atomicAdd(&tables[q].h[slot], sum_h(value));
    }
  }
  __syncthreads();
  for (std::uint32_t q = 0; q < n_features; ++q) {
    const std::int64_t sum = tables[q].sum(threadIdx.x);
    const std::uint64_t at =
        static_cast<std::uint64_t>(first_feature + q) * w.gain.channels + channel;
    if (sum != 0) add_to(histograms_of(w, tile.open) + at * most_codes + threadIdx.x, sum);
  }
}

// The best feature of a large node; by its last block. Sets the node's split where there is one.
template <bool logs>
inline void choose_split(const TreeWork& w, std::uint32_t open, double score, double floor) {
  __shared__ CodeTable table;
  const std::uint32_t number = large_node(w, open);
  TreeNode node = w.level.nodes[number];
  const std::int64_t* sums = sums_of(w, w.level, number);
  const std::uint16_t* drawn = drawn_of(w, number);
  const volatile FoundCut* found =  // of other blocks
      w.found + static_cast<std::uint64_t>(open - w.first_large) * w.n_drawn;
  Cut own{floor, 0xffffffffu, 0};
  bool varies = false;
  for (std::uint32_t j = threadIdx.x; j < w.n_drawn; j += tree_threads) {
    varies |= found[j].varies != 0;
    if (found[j].found) own = better_cut(own, {found[j].score, j, 0});
  }
  const Cut highest = BlockGroup::all(own, better_cut);
  varies = BlockGroup::any(varies);
  const RowSource<BlockGroup> rows{w.from + node.begin, node.end - node.begin, &table};
  NodeBest best{floor, 0, 0, 0, -1, 0, 0};
  if (highest.score > floor) {
    const volatile FoundCut& cut = found[highest.place];
    best = {cut.score,
            cut.left_h,
            cut.bin,
            cut.next,
            static_cast<std::int32_t>(drawn == nullptr ? highest.place : drawn[highest.place]),
            cut.missing_left,
            cut.missing_seen};
  } else if (!varies && drawn != nullptr) {
    search_further<BlockGroup, logs>(w, rows, sums, node.path, drawn, best);
  }
  if (best.feature < 0 || is_pure<BlockGroup>(w.targets, rows.elements, rows.n)) return;
  if (threadIdx.x != 0) return;
  settle(w, score, sums, best, node);
  w.level.nodes[number] = node;
}

// The best split of one feature in a large node. Grid: features, nodes.
template <bool logs>
inline void search_large_node(const TreeWork& w) {
  const std::uint32_t open = w.first_large + blockIdx.y, number = large_node(w, open);
  const std::uint16_t* drawn = drawn_of(w, number);
  const std::int64_t* sums = sums_of(w, w.level, number);
  const std::uint32_t feature = drawn == nullptr ? blockIdx.x : drawn[blockIdx.x];
  const double score = score_of_node(w, sums);
  const double floor = score_floor(w.gain, sums, score, w.min_gain, true);
  NodeBest best{floor, 0, 0, 0, -1, 0, 0};
  const HistogramSource source{histograms_of(w, open)};
  const bool varies = search_feature<BlockGroup, logs>(w, source, sums, w.level.nodes[number].path,
                                                       blockIdx.x, feature, best);
  if (threadIdx.x == 0)
    w.found[static_cast<std::uint64_t>(blockIdx.y) * w.n_drawn + blockIdx.x] = {
        best.score,        best.left_h, best.bin,          best.next,
        best.feature >= 0, varies,      best.missing_left, best.missing_seen};
  if (is_last(&w.large[open].n_searched, w.n_drawn)) choose_split<logs>(w, open, score, floor);
}

extern "C" __global__ void __launch_bounds__(tree_threads) search_large(TreeWork w) {
  search_large_node<false>(w);
}
extern "C" __global__ void __launch_bounds__(tree_threads) search_large_by_logs(TreeWork w) {
  search_large_node<true>(w);
}

// Divides the rows of the tiles of large nodes that are split; the last tile of a node appends its
// children. Grid: tiles.
extern "C" __global__ void __launch_bounds__(tree_threads) divide_tiles(TreeWork w) {
  __shared__ std::uint32_t counts[2], bases[2];
  const RowTile tile = w.level.tiles[blockIdx.x];
  const std::uint32_t number = large_node(w, tile.open);
  const TreeNode node = w.level.nodes[number];
  if (node.gain < 0) return;
  LargeNode& large = w.large[tile.open];
  const std::uint32_t n = node.end - node.begin, end = min(n, tile.first + rows_of_tile);
  const Element* from = w.from + node.begin;
  Element* to = w.to + node.begin;
  const RowTest test = test_of(w, node);
  constexpr std::uint32_t n_rounds = rows_of_tile / tree_threads;
  std::uint32_t places[n_rounds];
  std::uint32_t lefts = 0;  // rounds whose row goes left, by bit
  if (threadIdx.x < 2) counts[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (std::uint32_t round = 0; round < n_rounds; ++round) {
    const std::uint32_t i = tile.first + round * tree_threads + threadIdx.x;
    const bool left = i < end && test(from[i]);
    if (left) lefts |= 1u << round;
    places[round] = reserve(i < end, left, counts);
  }
  __syncthreads();
  if (threadIdx.x < 2)
    bases[threadIdx.x] =
        atomicAdd(threadIdx.x == 0 ? &large.left : &large.right, counts[threadIdx.x]);
  __syncthreads();
  std::int64_t* sums = w.large_sums + static_cast<std::uint64_t>(tile.open) * w.gain.channels;
#pragma unroll
  for (std::uint32_t round = 0; round < n_rounds; ++round) {
    const std::uint32_t i = tile.first + round * tree_threads + threadIdx.x;
    if (i >= end) continue;
    const bool left = lefts >> round & 1;
    const std::uint32_t place = bases[left ? 0 : 1] + places[round];
    to[left ? place : n - 1 - place] = from[i];
  }
  for (std::uint32_t c = 0; c < w.values.channels; ++c) {
    std::int64_t sum = 0;
    for (std::uint32_t round = 0; round < n_rounds; ++round)
      if (lefts >> round & 1)
        sum += value_of(w.values, from[tile.first + round * tree_threads + threadIdx.x], c);
    sum = warp_sum(sum);
    if (lane_of() == 0) add_to(sums + c, sum);
  }
  if (!is_last(&large.n_divided, (n + rows_of_tile - 1) / rows_of_tile) || threadIdx.x != 0) return;
  const volatile LargeNode& done = large;
  const volatile std::int64_t* left_sums = sums;
  append_children(w, number, done.left, [=](int c) { return left_sums[c]; });
}
