// Large nodes of a level: histograms by tiles of their rows, searches by features, division by
// tiles.
#include "grow/device/kernels/forests/purity.cuh"
#include "grow/device/kernels/forests/trees.cuh"

inline std::int64_t* histograms_of(const TreeWork& w, std::uint32_t open, std::uint32_t j) {
  return w.histograms +
         (std::uint64_t{open - w.first_large} * w.n_drawn + j) * w.values.channels * most_codes;
}

inline std::uint32_t drawn_feature(const TreeWork& w, std::uint32_t open, std::uint32_t j) {
  return w.n_drawn == w.n_features ? j : w.drawn[std::uint64_t{open} * w.n_drawn + j];
}

// The features of large nodes: those of the lowest hashes, ascending. A block takes a node. Dynamic
// shared memory: a hash a feature.
extern "C" __global__ void __launch_bounds__(tree_threads) draw_features(TreeWork w) {
  ARBOOST_DYNAMIC_SHARED(std::uint64_t, hashes);
  const std::uint64_t key = column_key(w, open_node(w.level, large_kind, blockIdx.x).path);
  for (std::uint32_t f = threadIdx.x; f < w.n_features; f += tree_threads)
    hashes[f] = column_hash(key, f);
  __syncthreads();
  std::uint16_t* out = w.drawn + std::uint64_t{blockIdx.x} * w.n_drawn;
  std::int64_t n = 0;
  for (std::uint32_t first = 0; first < w.n_features; first += tree_threads) {
    const std::uint32_t f = first + threadIdx.x;
    std::uint32_t n_lower = w.n_drawn;
    if (f < w.n_features) {
      n_lower = 0;
      for (std::uint32_t other = 0; other < w.n_features; ++other)
        n_lower += hashes[other] < hashes[f] ? 1 : 0;
    }
    const std::int64_t is_drawn = n_lower < w.n_drawn ? 1 : 0;
    const std::int64_t before = BlockGroup::sum_before(is_drawn);
    if (is_drawn) out[n + before] = static_cast<std::uint16_t>(f);
    n += BlockGroup::all(is_drawn, [](std::int64_t a, std::int64_t b) { return a + b; });
  }
}

// Adds the rows of tiles to the histograms of some features. Grid: tiles, groups of features,
// channels.
extern "C" __global__ void __launch_bounds__(tree_threads) tile_histograms(TreeWork w) {
  __shared__ CodeTable tables[features_of_block];
  const RowTile tile = w.level.tiles[blockIdx.x];
  if (tile.open < w.first_large || tile.open >= w.first_large + w.n_large) return;
  const TreeNode& node = w.nodes[open_node(w.level, large_kind, tile.open).number];
  const std::uint32_t channel = blockIdx.z;
  const std::uint32_t n = node.end - node.begin, end = min(n, tile.first + rows_of_tile);
  const Element* elements = w.elements[w.buffer] + node.begin;
  const std::uint32_t first_feature = blockIdx.y * features_of_block;
  const std::uint32_t n_features = min(features_of_block, w.n_drawn - first_feature);
  CodesOf codes[features_of_block];
#pragma unroll
  for (std::uint32_t q = 0; q < features_of_block; ++q) {
    const std::uint32_t j = first_feature + min(q, n_features - 1);
    codes[q] = codes_of(w.codes, w.columns[drawn_feature(w, tile.open, j)], n);
    tables[q].clear(threadIdx.x);
  }
  __syncthreads();
  for (std::uint32_t i = tile.first + threadIdx.x; i < end; i += tree_threads) {
    const Element e = elements[i];
    const PackedSum value = value_of(w.values, e, channel);
    std::uint32_t code[features_of_block];
#pragma unroll
    for (std::uint32_t q = 0; q < features_of_block; ++q) code[q] = codes[q][row_of(e)];
#pragma unroll
    for (std::uint32_t q = 0; q < features_of_block; ++q)
      if (q < n_features) tables[q].add(code[q], value);
  }
  __syncthreads();
#pragma unroll 1
  for (std::uint32_t q = 0; q < n_features; ++q) {
    const std::int64_t sum = tables[q].sum(threadIdx.x);
    std::int64_t* to = histograms_of(w, tile.open, first_feature + q);
    if (sum != 0) add_to(to + std::uint64_t{channel} * most_codes + threadIdx.x, sum);
  }
}

// The best feature of a large node; by its last block. Sets the node's split where there is one. A
// node whose drawn features are all constant joins the medium ones, which try further features.
inline void choose_split(const TreeWork& w, std::uint32_t open, double score, double floor) {
  const OpenNode& at = open_node(w.level, large_kind, open);
  TreeNode node = w.nodes[at.number];
  const std::int64_t* sums = open_sums(w, w.level, large_kind, open);
  const volatile FoundCut* cuts =  // of other blocks
      w.cuts + std::uint64_t{open - w.first_large} * w.n_drawn;
  Cut lane_cut{floor, no_candidate, 0};
  bool varies = false;
  for (std::uint32_t j = threadIdx.x; j < w.n_drawn; j += tree_threads) {
    varies |= cuts[j].varies != 0;
    if (cuts[j].is_valid) lane_cut = better_cut(lane_cut, {cuts[j].score, j, 0});
  }
  const Cut highest = BlockGroup::all(lane_cut, better_cut);
  varies = BlockGroup::any(varies);
  if (!varies && threadIdx.x == 0) {
    const std::uint32_t other = atomicAdd(&w.level.counts->n_open[medium_kind], 1u);
    open_node(w.level, medium_kind, other) = at;
    std::int64_t* own_sums = open_sums(w, w.level, medium_kind, other);
    for (std::uint32_t c = 0; c < w.values.channels; ++c) own_sums[c] = sums[c];
  }
  if (!(highest.score > floor)) return;
  if (is_pure<BlockGroup>(w.targets, w.elements[w.buffer] + node.begin, node.end - node.begin))
    return;
  if (threadIdx.x != 0) return;
  const volatile FoundCut& cut = cuts[highest.candidate];
  const auto feature = static_cast<std::int32_t>(drawn_feature(w, open, highest.candidate));
  const NodeBest best{cut.score, cut.left_h,       cut.bin,         cut.next,
                      feature,   cut.missing_left, cut.missing_seen};
  CodeSet levels;
  for (int word = 0; word < 4; ++word) levels.words[word] = cut.levels.words[word];
  settle(w, score, sums, best, keep_levels(w, best, levels), node);
  w.nodes[at.number] = node;
}

// The best splits of features in large nodes, a warp each. Grid: groups of features, nodes.
extern "C" __global__ void __launch_bounds__(tree_threads, 2) search_large(TreeWork w) {
  ARBOOST_DYNAMIC_SHARED(SearchScratch, scratch);
  const std::uint32_t open = w.first_large + blockIdx.y, j = blockIdx.x * tree_warps + warp_of();
  const std::int64_t* sums = open_sums(w, w.level, large_kind, open);
  const double score = score_of_node(w, sums);
  const double floor = score_floor(w.gain, sums, score, w.min_gain, true);
  if (j < w.n_drawn) {
    NodeBest best{floor, 0, 0, 0, -1, 0, 0};
    TableSource source{nullptr, 0, nullptr, histograms_of(w, open, j)};
    SearchScratch& own = scratch[warp_of()];
    const bool varies =
        search_column(w, source, own.room(), sums, open_node(w.level, large_kind, open).path,
                      drawn_feature(w, open, j), best);
    if (lane_of() == 0)
      w.cuts[std::uint64_t{blockIdx.y} * w.n_drawn + j] = {
          best.score, best.left_h,       best.bin,          best.next, best.feature >= 0,
          varies,     best.missing_left, best.missing_seen, own.levels};
  }
  if (is_last(&w.large[open].n_searched, gridDim.x)) choose_split(w, open, score, floor);
}

// Divides the rows of the tiles of large nodes that are split; the last tile of a node appends its
// children. Grid: tiles.
extern "C" __global__ void __launch_bounds__(tree_threads) divide_tiles(TreeWork w) {
  const RowTile tile = w.level.tiles[blockIdx.x];
  const OpenNode open = open_node(w.level, large_kind, tile.open);
  const TreeNode node = w.nodes[open.number];
  if (node.gain < 0) return;
  LargeNode& large = w.large[tile.open];
  const std::uint32_t n = node.end - node.begin;
  std::int64_t* sums = w.large_sums + std::uint64_t{tile.open} * w.values.channels;
  divide_rows(w, node, tile.first, min(n, tile.first + rows_of_tile), &large.left, &large.right,
              sums);
  if (!is_last(&large.n_divided, (n + rows_of_tile - 1) / rows_of_tile) || threadIdx.x != 0) return;
  const volatile LargeNode& done = large;
  const volatile std::int64_t* left_sums = sums;
  finish_split(w, open, node, done.left, open_sums(w, w.level, large_kind, tile.open),
               [=](int c) { return left_sums[c]; });
}
