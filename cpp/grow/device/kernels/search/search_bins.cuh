// The best split of one feature of more than 255 bins in one node: in tiles of a block's size, each
// of which goes on from the sums of those before.
#pragma once

#include "grow/device/kernels/search/search.cuh"

template <bool plain>
inline void search_bins(GainParams p, const BatchWork& batch, const FeatureColumn* columns) {
  constexpr std::uint32_t on_left = 1u << 16;  // index of a split with missing values on the left
  __shared__ std::int64_t buffer[search_threads / 32], before, rows_before;
  __shared__ std::uint32_t next;
  const auto [search, column, all_rows, feature, channels, first_slot, out] =
      own_search(p, batch, columns);
  const std::int64_t* slots = histogram_at(batch, search) + first_slot;
  const std::uint32_t t = threadIdx.x, n = column.n_bins;
  const bool counted = channels > 1;
  const std::int64_t missing = column.has_missing ? slots[n * channels] : 0;
  const std::int64_t missing_rows = counted && column.has_missing ? slots[n * channels + 1] : 0;
  const bool has_missing = missing != 0 || missing_rows != 0;
  const auto enough = [&](std::int64_t left) {
    return !counted || (left >= p.min_count && all_rows - left >= p.min_count);
  };
  if (t == 0) {
    before = rows_before = 0;
    next = n;
  }
  __syncthreads();
  Candidate lane_best{search.floor, 0xffffffffu};
  std::int64_t own_left = 0;
  const auto keep = [&](const Candidate& other, std::int64_t left) {
    const Candidate chosen = better(lane_best, other);
    if (chosen.index == lane_best.index) return;
    lane_best = chosen;
    own_left = left;
  };
  for (std::uint32_t first = 0; first < n; first += search_threads) {
    const std::uint32_t bin = first + t;
    const std::int64_t sum = prefix_sum(bin < n ? slots[bin * channels] : 0, buffer) + before;
    const std::int64_t rows =
        counted ? prefix_sum(bin < n ? slots[bin * channels + 1] : 0, buffer) + rows_before : 0;
    if (bin < (has_missing ? n : n - 1) && enough(rows))  // missing values on the right
      keep({score_of<plain>(p, sum, search.total, true), bin}, sum);
    if (has_missing && bin < n - 1 && enough(rows + missing_rows))
      keep({score_of<plain>(p, sum + missing, search.total, sum != 0), on_left + bin},
           sum + missing);
    __syncthreads();
    if (t == search_threads - 1) {
      before = sum;
      rows_before = rows;
    }
    __syncthreads();
  }
  const Candidate best = best_of_block(lane_best);
  const bool is_found = best.score > search.floor;
  const std::uint32_t bin = best.index & (on_left - 1);
  for (std::uint32_t b = bin + 1 + t; is_found && b < n; b += search_threads) {
    bool is_seen = slots[b * channels] != 0;
    if (counted) is_seen = is_seen || slots[b * channels + 1] != 0;
    if (is_seen) {
      atomicMin(&next, b);
      break;
    }
  }
  __syncthreads();
  if (!is_found) {
    if (t == 0) out->is_valid = 0;
  } else if (lane_best.index == best.index) {
    *out = {best.score,
            own_left,
            bin,
            next,
            feature,
            1,
            static_cast<std::uint8_t>(best.index >= on_left),
            static_cast<std::uint8_t>(has_missing),
            0,
            {}};
  }
}
