// Searches of trees with vector leaves: the scores of all outputs are added, in their order, as in
// grow/search/split.h. Numerical features without sparse columns. Grid: features, searches.
#include "grow/device/kernels/search/search.cuh"

// The sum of one channel over the rows with this thread's code.
inline std::int64_t sum_of_code(const FeatureColumn& column, const std::int64_t* slots,
                                std::uint32_t channels, std::uint32_t channel) {
  const std::uint32_t t = threadIdx.x;
  if (column.own_codes == nullptr)
    return t < column.n_bins + column.has_missing ? slots[t * channels + channel] : 0;
  __shared__ std::int64_t by_code[search_threads];
  by_code[t] = 0;
  __syncthreads();
  if (t < column.n_slots) add_to(&by_code[column.own_codes[t]], slots[t * channels + channel]);
  __syncthreads();
  const std::int64_t sum = by_code[t];
  __syncthreads();
  return sum;
}

// Sums of a channel: on the left of a split after this thread's code, of missing values, of all.
struct BinSums {
  std::int64_t of_code, left, missing, total;
};

inline BinSums bin_sums(const FeatureColumn& column, const std::int64_t* slots,
                        std::uint32_t channels, std::uint32_t channel) {
  __shared__ std::int64_t buffer[search_threads / 32], values, missing;
  const std::uint32_t t = threadIdx.x, n = column.n_bins;
  const std::int64_t of_code = sum_of_code(column, slots, channels, channel);
  const std::int64_t left = prefix_sum(t < n ? of_code : 0, buffer);
  if (t == 0) missing = 0;
  __syncthreads();
  if (t == search_threads - 1) values = left;
  if (t == n) missing = of_code;  // 0 without missing values
  __syncthreads();
  return {of_code, left, missing, values + missing};
}

// The score of a split over all outputs, so far, and the hessians of its sides.
struct OutputScore {
  double score = 0;
  std::int64_t left_h = 0, right_h = 0;
  bool has_rows = true;  // enough on both sides

  template <bool plain>
  void add(const GainParams& p, std::int64_t left, std::int64_t total) {
    const std::int64_t right = total - left;
    left_h += sum_h(left);
    right_h += sum_h(right);
    score += split_score<plain, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
  }
  void count(const GainParams& p, std::int64_t left, std::int64_t total) {
    has_rows = left >= p.min_count && total - left >= p.min_count;
  }
  double allowed(const GainParams& p) const {
    const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;  // the mean over outputs counts
    return left_h >= min_h && right_h >= min_h && has_rows ? score : forbidden;
  }
};

template <bool plain>
inline void search_outputs_of(GainParams p, const BatchWork& batch, const FeatureColumn* columns) {
  __shared__ std::uint32_t next;
  const auto [search, column, all_rows, feature, channels, first_slot, out] =
      own_search(p, batch, columns);
  const std::int64_t* slots = histogram_of(batch, search, column, channels) + first_slot;
  const std::uint32_t t = threadIdx.x, n = column.n_bins;
  OutputScore right, left;  // missing values on that side
  bool has_missing = false, is_seen = false;
  for (int c = 0; c < p.channels; ++c) {
    const BinSums sums = bin_sums(column, slots, channels, static_cast<std::uint32_t>(c));
    has_missing |= sums.missing != 0;
    is_seen |= sums.of_code != 0;
    if (c < p.outputs) {
      right.add<plain>(p, sums.left, sums.total);
      left.add<plain>(p, sums.left + sums.missing, sums.total);
    } else {
      right.count(p, sums.left, sums.total);
      left.count(p, sums.left + sums.missing, sums.total);
    }
  }
  if (t == 0) next = n;
  Candidate lane_best{search.floor, 0xffffffffu};
  if (t < (has_missing ? n : n - 1)) lane_best = better(lane_best, {right.allowed(p), t});
  if (has_missing && t < n - 1) lane_best = better(lane_best, {left.allowed(p), 256 + t});
  const Candidate best = best_of_block(lane_best);
  const bool is_found = best.score > search.floor;
  const std::uint32_t bin = best.index & 255;
  if (is_found && t > bin && t < n && is_seen) atomicMin(&next, t);
  __syncthreads();
  if (t != 0) return;
  *out = {best.score,
          0,
          bin,
          next,
          feature,
          static_cast<std::uint8_t>(is_found),
          static_cast<std::uint8_t>(best.index >= 256),
          static_cast<std::uint8_t>(has_missing),
          0,
          {}};
}

// Sums on the left of the best split of a search, for the host; by the last block of the search.
inline void write_left(const GainParams& p, const BatchWork& batch, const FeatureColumn* columns) {
  __shared__ std::uint32_t index;
  const NodeSearch& search = batch.searches[blockIdx.y];
  const std::uint32_t feature = best_feature(batch, blockIdx.y);
  if (threadIdx.x == 0) index = feature;
  __syncthreads();
  if (index != 0xffffffffu) {
    const FoundSplit split =
        batch.splits[static_cast<std::uint64_t>(blockIdx.y) * batch.most_features + index];
    const FeatureColumn column = columns[split.feature];
    const auto channels = static_cast<std::uint32_t>(p.channels);
    const volatile std::int64_t* slots =  // other blocks may have added them up
        histogram_at(batch, search) + static_cast<std::uint64_t>(column.first_slot) * channels;
    const bool is_own = column.own_codes == nullptr;
    const std::uint32_t n_slots = is_own ? column.n_bins + column.has_missing : column.n_slots;
    for (int k = static_cast<int>(threadIdx.x); k < p.outputs; k += search_threads) {
      std::int64_t sum = 0;
      for (std::uint32_t s = 0; s < n_slots; ++s) {
        const std::uint32_t code = is_own ? s : column.own_codes[s];
        const bool is_left = code <= split.bin || (split.missing_left && code == column.n_bins);
        if (is_left) sum += slots[s * channels + static_cast<std::uint32_t>(k)];
      }
      batch.best_left[static_cast<std::uint64_t>(blockIdx.y) * p.outputs + k] = sum;
    }
    __threadfence_system();
  }
  __syncthreads();
}

template <bool plain>
inline void search_all_outputs(const GainParams& p, const BatchWork& batch,
                               const FeatureColumn* columns) {
  const std::uint32_t n = batch.searches[blockIdx.y].n_features;
  if (blockIdx.x >= n) return;
  search_outputs_of<plain>(p, batch, columns);
  if (!is_last(batch.n_done + blockIdx.y, n)) return;
  write_left(p, batch, columns);
  choose_feature(batch, blockIdx.y, columns);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_outputs_plain(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  search_all_outputs<true>(p, batch, columns);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_outputs_limited(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  search_all_outputs<false>(p, batch, columns);
}
