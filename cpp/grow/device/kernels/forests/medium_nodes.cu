// Medium nodes of a level: a block splits a node, and each of its warps searches a feature.
#include "grow/device/kernels/forests/purity.cuh"
#include "grow/device/kernels/forests/trees.cuh"

// Orders the features of a node by their hashes; the drawn ones come first.
inline void order_features(const TreeWork& w, std::uint64_t path, std::uint64_t* hashes,
                           std::uint16_t* order) {
  const std::uint64_t key = column_key(w, path);
  const bool draws = w.n_drawn < w.n_features;
  for (std::uint32_t f = threadIdx.x; f < w.n_features; f += tree_threads)
    hashes[f] = draws ? column_hash(key, f) : f;
  __syncthreads();
  for (std::uint32_t f = threadIdx.x; f < w.n_features; f += tree_threads) {
    std::uint32_t n_lower = 0;
    for (std::uint32_t other = 0; other < w.n_features; ++other)
      n_lower += hashes[other] < hashes[f] ? 1 : 0;
    order[n_lower] = static_cast<std::uint16_t>(f);
  }
  __syncthreads();
}

// The better of two features' splits; of equals that of the first feature.
inline NodeBest better_split(const NodeBest& a, const NodeBest& b) {
  if (b.feature < 0) return a;
  if (a.feature < 0 || b.score > a.score) return b;
  return b.score == a.score && b.feature < a.feature ? b : a;
}

// The best split of a node from its rows, with its levels. All drawn features may be constant in
// it: then further ones are tried up to the first that is not, as in grow/split/random_cuts.cpp.
inline NodeBest search_rows(const TreeWork& w, const Element* elements, std::uint32_t n,
                            const std::int64_t* sums, std::uint64_t path, double floor,
                            SearchScratch* scratch, const std::uint16_t* order,
                            CodeSet& best_levels) {
  __shared__ NodeBest best_of_warps[tree_warps];
  __shared__ bool varies[tree_warps];
  const NodeBest none{floor, 0, 0, 0, -1, 0, 0};
  NodeBest best = none;
  TableSource source{elements, n, &scratch[warp_of()].table, nullptr};
  bool any_varies = false;
#pragma unroll 1
  for (std::uint32_t first = 0, end; first < w.n_features; first = min(first + tree_warps, end)) {
    const bool is_further = first >= w.n_drawn;
    if (is_further && any_varies) break;
    end = is_further ? w.n_features : w.n_drawn;
    const std::uint32_t j = first + warp_of();
    NodeBest lane_best = none;
    bool own_varies = false;
    if (j < end)
      own_varies =
          search_column(w, source, scratch[warp_of()].room(), sums, path, order[j], lane_best);
    if (lane_of() == 0) {
      best_of_warps[warp_of()] = lane_best;
      varies[warp_of()] = own_varies;
    }
    __syncthreads();
    for (std::uint32_t warp = 0; warp < tree_warps; ++warp) {
      if (is_further && any_varies) break;  // only the first one counts
      any_varies |= varies[warp];
      const NodeBest better = better_split(best, best_of_warps[warp]);
      if (threadIdx.x == 0 && better.feature != best.feature) best_levels = scratch[warp].levels;
      best = better;
    }
    __syncthreads();
  }
  return best;
}

// Dynamic shared memory: search scratch of each warp; a hash and an order index of each feature.
extern "C" __global__ void __launch_bounds__(tree_threads, 2) grow_medium(TreeWork w) {
  ARBOOST_DYNAMIC_SHARED(SearchScratch, scratch);
  __shared__ std::uint32_t counts[2], set;
  __shared__ CodeSet levels;
  if (blockIdx.x >= w.level.counts->n_open[medium_kind]) return;
  auto* hashes = reinterpret_cast<std::uint64_t*>(scratch + tree_warps);
  auto* order = reinterpret_cast<std::uint16_t*>(hashes + w.n_features);
  const OpenNode open = open_node(w.level, medium_kind, blockIdx.x);
  const std::int64_t* sums = open_sums(w, w.level, medium_kind, blockIdx.x);
  TreeNode node = w.nodes[open.number];
  const std::uint32_t n = node.end - node.begin;
  const Element* from = w.elements[w.buffer] + node.begin;
  if (is_pure<BlockGroup>(w.targets, from, n)) return;
  order_features(w, open.path, hashes, order);
  const double score = score_of_node(w, sums);
  const double floor = score_floor(w.gain, sums, score, w.min_gain, true);
  const NodeBest best = search_rows(w, from, n, sums, open.path, floor, scratch, order, levels);
  if (best.feature < 0) return;
  if (threadIdx.x == 0) set = keep_levels(w, best, levels);
  __syncthreads();
  settle(w, score, sums, best, set, node);
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
