// Searches of tables whose features are all numbers. Grid: features, searches.
#include "grow/device/kernels/search/search.cuh"

// Searches, and the best feature of each search by the last of its blocks.
template <bool plain>
inline void search_splits(const GainParams& p, const BatchWork& batch,
                          const FeatureColumn* columns) {
  const std::uint32_t n = batch.searches[blockIdx.y].n_features;
  if (blockIdx.x >= n) return;
  search_feature<plain>(p, batch, columns);
  if (is_last(batch.n_done + blockIdx.y, n)) choose_feature(batch, blockIdx.y, columns);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_plain(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  search_splits<true>(p, batch, columns);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_limited(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  search_splits<false>(p, batch, columns);
}
