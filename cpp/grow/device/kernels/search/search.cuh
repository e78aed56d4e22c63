// Histograms -> best splits. Scores are the same operations on doubles as in grow/search/split.h,
// without contraction.
#pragma once

#include "grow/device/kernels/parts.cuh"
#include "grow/device/kernels/rows.cuh"
#include "grow/search/gain.h"

constexpr int search_threads = 256;
constexpr double forbidden = -1.7976931348623157e308;

// Better: the higher score; of equal scores, the lower index.
struct Candidate {
  double score;
  std::uint32_t index;
};

inline Candidate better(const Candidate& a, const Candidate& b) {
  return b.score > a.score || (b.score == a.score && b.index < a.index) ? b : a;
}

// The best candidate of a block of search_threads, in all threads.
inline Candidate best_of_block(Candidate best) {
  __shared__ Candidate warp_best[search_threads / 32];
  for (int step = 16; step > 0; step >>= 1)
    best = better(best, {__shfl_xor_sync(all_lanes, best.score, step),
                         __shfl_xor_sync(all_lanes, best.index, step)});
  if (lane_of() == 0) warp_best[warp_of()] = best;
  __syncthreads();
  best = warp_best[0];
  for (int w = 1; w < search_threads / 32; ++w) best = better(best, warp_best[w]);
  __syncthreads();
  return best;
}

// Inclusive prefix sums over a block of search_threads; `buffer` is shared memory.
inline std::int64_t prefix_sum(std::int64_t value, std::int64_t* buffer) {
  for (int step = 1; step < 32; step <<= 1) {
    const std::int64_t other = __shfl_up_sync(all_lanes, value, step);
    if (static_cast<int>(lane_of()) >= step) value += other;
  }
  if (lane_of() == 31) buffer[warp_of()] = value;
  __syncthreads();
  for (std::uint32_t w = 0; w < warp_of(); ++w) value += buffer[w];
  __syncthreads();
  return value;
}

// The score of a split with `left` of the total on its left. `has_values`: not only missing ones.
template <bool plain>
inline double score_of(const GainParams& p, std::int64_t left, std::int64_t total,
                       bool has_values) {
  const std::int64_t right = total - left;
  const std::int32_t left_h = sum_h(left), right_h = sum_h(right);
  bool allowed = left_h >= p.min_h && right_h >= p.min_h;
  double score;
  if (p.bounded) {
    const double left_g = sum_g(left), right_g = sum_g(right);
    const double left_step = bounded_step(p, left_g, left_h);
    const double right_step = bounded_step(p, right_g, right_h);
    score = score_of_step(p, left_g, left_h, left_step) +
            score_of_step(p, right_g, right_h, right_step);
    const double direction = p.direction;
    allowed = allowed && direction * (right_step - left_step) >= 0 && has_values;
  } else {
    score = split_score<plain, double>(p, sum_g(left), left_h, sum_g(right), right_h);
  }
  return allowed ? score : forbidden;
}

// Place of the best feature of a search among its features, of equals the first; ~0: none has a
// split. In all lanes of the first warp; 0 in others.
inline std::uint32_t best_feature(const BatchWork& batch, std::uint32_t s) {
  if (warp_of() != 0) return 0;
  const NodeSearch& search = batch.searches[s];
  const volatile FoundSplit* splits =  // of other blocks
      batch.splits + static_cast<std::uint64_t>(s) * batch.most_features;
  Candidate highest{search.floor, 0xffffffffu};
  for (std::uint32_t j = lane_of(); j < search.n_features; j += 32)
    if (splits[j].is_valid) highest = better(highest, {splits[j].score, j});
  for (int step = 16; step > 0; step >>= 1)
    highest = better(highest, {__shfl_xor_sync(all_lanes, highest.score, step),
                               __shfl_xor_sync(all_lanes, highest.index, step)});
  return highest.index;
}

// True if the rows on both sides of a split of a small node are enough; they are counted where
// hessians leave that in doubt. By all threads of a block.
inline bool has_enough_rows(const BatchWork& batch, const NodeSearch& search,
                            const FoundSplit& split, const FeatureColumn& column) {
  __shared__ std::uint32_t n_left;
  const NodeCount rows = batch.counts[search.node];
  const std::uint32_t n = search.side == 0 ? rows.left : rows.right;
  const std::int64_t left_h = sum_h(split.left), right_h = sum_h(search.total) - left_h;
  if ((left_h < right_h ? left_h : right_h) >= batch.certain_h) return true;
  if (n > most_counted_rows || column.own_codes != nullptr) return false;
  const NodeWork& work = batch.nodes[search.node];
  const Element* elements =
      batch.elements[1 - work.buffer] + work.begin + (search.side == 0 ? 0 : rows.left);
  if (threadIdx.x == 0) n_left = 0;
  __syncthreads();
  std::int64_t count = 0;
  for (std::uint32_t i = threadIdx.x; i < n; i += search_threads) {
    const std::uint64_t at = column.store * batch.n_table_rows + row_of(elements[i]);
    const std::uint32_t code = batch.code_width == 1
                                   ? batch.by_column[at]
                                   : reinterpret_cast<const std::uint16_t*>(batch.by_column)[at];
    const bool is_left = split.by_set                                  ? holds(split.levels, code)
                         : column.has_missing && code == column.n_bins ? split.missing_left != 0
                                                                       : code <= split.bin;
    count += is_left ? 1 : 0;
  }
  count = warp_sum(count);
  if (lane_of() == 0) atomicAdd(&n_left, static_cast<std::uint32_t>(count));
  __syncthreads();
  return min(n_left, n - n_left) >= batch.min_rows;
}

// Gives the best feature of a search to the host; by all threads of the last block of a search.
inline void choose_feature(const BatchWork& batch, std::uint32_t s, const FeatureColumn* columns) {
  __shared__ std::uint32_t shared_index;
  const std::uint32_t first_warp_index = best_feature(batch, s);
  if (threadIdx.x == 0) shared_index = first_warp_index;
  __syncthreads();
  const std::uint32_t index = shared_index;
  const FoundSplit* split =
      batch.splits + static_cast<std::uint64_t>(s) * batch.most_features + index;
  const bool is_valid = index != 0xffffffffu;
  const bool has_rows = is_valid && batch.certain_h > 0 &&
                        has_enough_rows(batch, batch.searches[s], *split, columns[split->feature]);
  if (threadIdx.x != 0) return;
  if (is_valid) batch.best[s] = *split;
  batch.best[s].is_valid = is_valid;
  batch.best[s].has_rows = has_rows;
  __threadfence_system();
  if (atomicAdd(&batch.state->n_searches, 1u) == batch.n_searches - 1) give(batch.answer);
}

// The histogram of the node of a search.
inline std::int64_t* histogram_at(const BatchWork& batch, const NodeSearch& search) {
  const NodeWork& work = batch.nodes[search.node];
  const NodeCount rows = batch.counts[search.node];
  const bool is_smaller = (rows.left <= rows.right) == (search.side == 0);
  if (is_smaller) return work.children[0];
  return work.parent != nullptr ? work.parent : work.children[1];
}

// The same, complete. Where the parts of a batch were not combined before, those
// of the feature are added up here, by a thread a slot: the histogram is complete once all features
// are searched.
inline std::int64_t* histogram_of(const BatchWork& batch, const NodeSearch& search,
                                  const FeatureColumn& column, std::uint32_t channels) {
  const NodeWork& work = batch.nodes[search.node];
  const NodeCount rows = batch.counts[search.node];
  const bool is_smaller = (rows.left <= rows.right) == (search.side == 0);
  std::int64_t* histogram = histogram_at(batch, search);
  if (batch.is_combined) return histogram;
  const bool subtracts = !is_smaller && work.parent != nullptr;
  const SegmentParts parts = parts_of(batch, 2 * search.node + (is_smaller || subtracts ? 0 : 1));
  if (!parts.is_divided && !subtracts) return histogram;
  if (threadIdx.x < column.n_bins + column.has_missing) {
    for (std::uint32_t c = 0; c < channels; ++c) {
      const std::uint32_t slot = (column.first_slot + threadIdx.x) * channels + c;
      const std::int64_t sum = slot_of(parts, batch, slot);
      histogram[slot] = subtracts ? histogram[slot] - sum : sum;
    }
  }
  __syncthreads();
  return histogram;
}

// Slots by the feature's codes, folded where the stored column has others: in shared memory, the
// sums of the stored slots with each code. `n_rows`: of the node.
inline const std::int64_t* slots_by_code(const FeatureColumn& column, const NodeSearch& search,
                                         std::int64_t n_rows, std::uint32_t channels,
                                         const std::int64_t* slots) {
  constexpr std::uint32_t most_channels = 2;
  __shared__ std::int64_t by_code[search_threads * most_channels];
  if (column.own_codes == nullptr) return slots;
  for (std::uint32_t c = 0; c < channels; ++c) by_code[threadIdx.x * channels + c] = 0;
  __syncthreads();
  if (threadIdx.x < column.n_slots) {
    const std::uint32_t code = column.own_codes[threadIdx.x];
    for (std::uint32_t c = 0; c < channels; ++c) {
      const std::int64_t sum = slots[threadIdx.x * channels + c];
      add_to(&by_code[code * channels + c], sum);
      if (column.usual != no_code) add_to(&by_code[column.usual * channels + c], -sum);
    }
  }
  if (column.usual != no_code && threadIdx.x < channels)
    add_to(&by_code[column.usual * channels + threadIdx.x],
           threadIdx.x == 0 ? search.total : n_rows);
  __syncthreads();
  return by_code;
}

// One feature in one node, searched by a block.
struct FeatureSearch {
  NodeSearch search;
  FeatureColumn column;
  std::int64_t all_rows;  // of the node
  std::uint32_t feature, channels;
  std::uint64_t first_slot;  // of the feature in a histogram
  FoundSplit* out;
};

// The block's search; its bounds and its direction become those of the gains.
inline FeatureSearch own_search(GainParams& p, const BatchWork& batch,
                                const FeatureColumn* columns) {
  const NodeSearch search = batch.searches[blockIdx.y];
  const std::uint32_t feature = batch.features[search.first_feature + blockIdx.x];
  const FeatureColumn column = columns[feature];
  const NodeCount rows = batch.counts[search.node];
  const auto channels = static_cast<std::uint32_t>(p.channels);
  p.lower = search.lower;
  p.upper = search.upper;
  p.direction = column.direction;
  return {search,
          column,
          search.side == 0 ? rows.left : rows.right,
          feature,
          channels,
          static_cast<std::uint64_t>(column.first_slot) * channels,
          batch.splits + static_cast<std::uint64_t>(blockIdx.y) * batch.most_features + blockIdx.x};
}

// The best split of one feature in one node: the same as grow/search/split.h. With `folds`, stored
// columns may have other features, too.
template <bool plain, bool folds = false>
inline void search_feature(GainParams p, const BatchWork& batch, const FeatureColumn* columns) {
  __shared__ std::int64_t buffer[search_threads / 32];
  __shared__ std::uint32_t next;
  const auto [search, column, all_rows, feature, channels, first_slot, out] =
      own_search(p, batch, columns);
  const std::int64_t* slots = histogram_of(batch, search, column, channels) + first_slot;
  if constexpr (folds) slots = slots_by_code(column, search, all_rows, channels, slots);
  const std::uint32_t t = threadIdx.x, n = column.n_bins;
  const bool counted = channels > 1;
  const std::int64_t value = t < n ? slots[t * channels] : 0;
  const std::int64_t count = counted && t < n ? slots[t * channels + 1] : 0;
  const std::int64_t missing = column.has_missing ? slots[n * channels] : 0;
  const std::int64_t missing_count = counted && column.has_missing ? slots[n * channels + 1] : 0;
  const bool has_missing = missing != 0 || missing_count != 0;
  const std::int64_t prefix = prefix_sum(value, buffer);
  const std::int64_t rows_left = counted ? prefix_sum(count, buffer) : 0;
  const auto enough = [&](std::int64_t left) {
    return !counted || (left >= p.min_count && all_rows - left >= p.min_count);
  };
  if (t == 0) next = n;

  Candidate best{search.floor, 0xffffffffu};
  if (t < (has_missing ? n : n - 1) && enough(rows_left))  // missing values on the right
    best = better(best, {score_of<plain>(p, prefix, search.total, true), t});
  if (has_missing && t < n - 1 && enough(rows_left + missing_count))
    best = better(best, {score_of<plain>(p, prefix + missing, search.total, prefix != 0), 256 + t});
  best = best_of_block(best);
  const bool is_found = best.score > search.floor;
  const std::uint32_t bin = best.index & 255;
  if (is_found && t > bin && t < n && (value != 0 || count != 0)) atomicMin(&next, t);
  __syncthreads();
  if (!is_found) {
    if (t == 0) out->is_valid = 0;
  } else if (t == bin) {
    const bool missing_left = best.index >= 256;
    *out = {best.score,
            prefix + (missing_left ? missing : 0),
            bin,
            next,
            feature,
            1,
            static_cast<std::uint8_t>(missing_left),
            static_cast<std::uint8_t>(has_missing),
            0,
            {}};
  }
}
