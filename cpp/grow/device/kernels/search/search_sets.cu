// Searches of tables with categories and with features that share stored columns. Splits by sets of
// levels are as in grow/search/category.h and grow/search/groups.h, for one output; a block
// searches one feature of one node, with a thread a level.
#include "grow/device/kernels/search/search.cuh"
#include "grow/device/kernels/search/search_bins.cuh"

// A split by a set of levels: the levels before an index in an order of them.
struct SetSplit {
  double score;
  std::int64_t left;
  std::uint32_t index;
  bool is_in_order;   // of groups
  bool missing_left;  // in that order
};

// A node's levels, in shared memory. `sums` and `rows` are by code, the others by number among the
// levels that are tried.
struct LevelScratch {
  std::int64_t sums[search_threads], rows[search_threads];
  std::int64_t level_sums[search_threads + 1], level_rows[search_threads + 1];
  double keys[search_threads + 1];
  std::uint16_t codes[search_threads + 1], order[search_threads + 1];
  std::int64_t prefix_buffer[search_threads / 32];
  unsigned seen[8], pool[8], left[8];  // sets of codes, in words of 32 bits
};
constexpr std::uint32_t pooled_levels = 256;  // code of the levels that are pooled

inline void add_code(unsigned* set, std::uint32_t code) {
  atomicOr(&set[code >> 5], 1u << (code & 31));
}
inline bool has_code(const unsigned* set, std::uint32_t code) {
  return set[code >> 5] >> (code & 31) & 1;
}
inline unsigned word_of(const CodeSet& set, std::uint32_t word) {
  return static_cast<unsigned>(set.words[word / 2] >> (32 * (word % 2)));
}

// The sum over a block, in all threads.
inline std::int64_t sum_of_block(std::int64_t value, LevelScratch& scratch) {
  value = warp_sum(value);
  if (lane_of() == 0) scratch.prefix_buffer[warp_of()] = value;
  __syncthreads();
  value = 0;
  for (int w = 0; w < search_threads / 32; ++w) value += scratch.prefix_buffer[w];
  __syncthreads();
  return value;
}

// The node that is searched.
struct SetNode {
  std::int64_t total, n_rows;
  std::uint32_t missing;  // code
  bool counted;
};

inline double score_of_set(const GainParams& p, const SetNode& node, std::int64_t left,
                           std::int64_t rows_left) {
  const std::int64_t right = node.total - left;
  const double left_g = sum_g(left), left_h = sum_h(left);
  const double right_g = sum_g(right), right_h = sum_h(right);
  double score;
  if (p.bounded)
    score = score_of_step(p, left_g, left_h, bounded_step(p, left_g, left_h)) +
            score_of_step(p, right_g, right_h, bounded_step(p, right_g, right_h));
  else
    score = is_plain(p) ? split_score<true, double>(p, left_g, left_h, right_g, right_h)
                        : split_score<false, double>(p, left_g, left_h, right_g, right_h);
  bool allowed = sum_h(left) >= p.min_h && sum_h(right) >= p.min_h;
  if (node.counted)
    allowed = allowed && rows_left >= p.min_count && node.n_rows - rows_left >= p.min_count;
  return allowed ? score : forbidden;
}

inline double score_of_total(const GainParams& p, std::int64_t total) {
  const double g = sum_g(total), h = sum_h(total);
  if (p.bounded) return score_of_step(p, g, h, bounded_step(p, g, h));
  return is_plain(p) ? side_score<true>(p, g, h) : side_score<false>(p, g, h);
}

// The best cut in the order of groups; a thread a group.
inline void try_in_order(const GainParams& p, const SetNode& node, const GroupColumn& groups,
                         LevelScratch& scratch, SetSplit& best) {
  const std::uint32_t t = threadIdx.x;
  const std::uint32_t code = t < groups.n ? groups.order[t] : 0;
  const bool is_seen = t < groups.n && has_code(scratch.seen, code);
  const bool has_missing = has_code(scratch.seen, node.missing);
  const std::int64_t left = prefix_sum(is_seen ? scratch.sums[code] : 0, scratch.prefix_buffer);
  const std::int64_t rows = prefix_sum(is_seen ? scratch.rows[code] : 0, scratch.prefix_buffer);
  const std::int64_t n_before = prefix_sum(is_seen ? 1 : 0, scratch.prefix_buffer);
  const bool is_last = n_before == sum_of_block(is_seen ? 1 : 0, scratch);
  const std::int64_t missing = has_missing ? scratch.sums[node.missing] : 0;
  const std::int64_t missing_rows = has_missing ? scratch.rows[node.missing] : 0;
  Candidate lane_best{best.score, 0xffffffffu};
  if (is_seen && (!is_last || has_missing))
    lane_best = better(lane_best, {score_of_set(p, node, left, rows), 2 * t});
  if (is_seen && !is_last && has_missing)
    lane_best =
        better(lane_best, {score_of_set(p, node, left + missing, rows + missing_rows), 2 * t + 1});
  const Candidate candidate = best_of_block(lane_best);
  if (!(candidate.score > best.score)) return;
  // Groups that the node lacks go with the nearer neighbour.
  __shared__ std::uint32_t next;
  __shared__ std::int64_t left_sum;
  const std::uint32_t index = candidate.index / 2;
  if (t == 0) next = groups.n;
  __syncthreads();
  if (is_seen && t > index) atomicMin(&next, t);
  if (t == index) left_sum = left + (candidate.index % 2 != 0 ? missing : 0);
  __syncthreads();
  const std::uint32_t n_left = next < groups.n ? (index + next + 1) / 2 : groups.n;
  best = {candidate.score, left_sum, n_left, true, candidate.index % 2 != 0};
}

// One level against all others; a thread a code.
inline void try_each(const GainParams& p, const SetNode& node, const GroupColumn* groups,
                     LevelScratch& scratch, SetSplit& best) {
  const std::uint32_t t = threadIdx.x;
  const bool is_tried =
      has_code(scratch.seen, t) && (groups == nullptr || !holds(groups->shared, t));
  Candidate lane_best{best.score, 0xffffffffu};
  if (is_tried)
    lane_best = better(lane_best, {score_of_set(p, node, scratch.sums[t], scratch.rows[t]), t});
  const Candidate candidate = best_of_block(lane_best);
  if (!(candidate.score > best.score)) return;
  best = {candidate.score, scratch.sums[candidate.index], candidate.index, false, false};
  if (t < 8) scratch.left[t] = candidate.index >> 5 == t ? 1u << (candidate.index & 31) : 0;
  __syncthreads();
}

// Levels of the node by number: frequent ones by code, and all rare and shared ones as one, the
// last. Returns how many.
inline std::uint32_t pool_rare(const GainParams& p, const GroupColumn* groups,
                               LevelScratch& scratch) {
  const std::uint32_t t = threadIdx.x;
  const double least = groups == nullptr ? p.min_cat_h : p.min_group_h;
  const bool is_seen = has_code(scratch.seen, t);
  const bool is_shared = is_seen && groups != nullptr && holds(groups->shared, t);
  const bool is_rare =
      is_seen && (static_cast<double>(sum_h(scratch.sums[t])) < least || is_shared);
  const bool is_kept = is_seen && !is_rare;
  const std::int64_t before = prefix_sum(is_kept ? 1 : 0, scratch.prefix_buffer);
  const auto n_kept = static_cast<std::uint32_t>(sum_of_block(is_kept ? 1 : 0, scratch));
  const std::int64_t n_pooled = sum_of_block(is_rare ? 1 : 0, scratch);
  const std::int64_t n_shared = sum_of_block(is_shared ? 1 : 0, scratch);
  const std::int64_t pooled = sum_of_block(is_rare ? scratch.sums[t] : 0, scratch);
  const std::int64_t pooled_rows = sum_of_block(is_rare ? scratch.rows[t] : 0, scratch);
  if (is_kept) {
    scratch.codes[before - 1] = static_cast<std::uint16_t>(t);
    scratch.level_sums[before - 1] = scratch.sums[t];
    scratch.level_rows[before - 1] = scratch.rows[t];
  }
  if (is_rare) add_code(scratch.pool, t);
  if (n_pooled > 0 && t == 0) {
    scratch.codes[n_kept] = pooled_levels;
    scratch.level_sums[n_kept] = pooled;
    scratch.level_rows[n_kept] = pooled_rows;
  }
  __syncthreads();
  if (n_shared > 0 && t < 8) {  // those that the node lacks stay with the others
    scratch.pool[t] |= word_of(groups->shared, t);
    scratch.seen[t] |= word_of(groups->shared, t);
  }
  __syncthreads();
  return n_kept + (n_pooled > 0 ? 1 : 0);
}

// The best set of levels that are first by their smoothed mean gradients.
inline void try_prefixes(const GainParams& params, const SetNode& node, const GroupColumn* groups,
                         LevelScratch& scratch, SetSplit& best) {
  GainParams p = params;
  p.reg_lambda += p.cat_l2;
  // Scores must be comparable between features, so only the gain over the node's score counts.
  const double shift = score_of_total(params, node.total) - score_of_total(p, node.total);
  const std::uint32_t t = threadIdx.x, n = pool_rare(p, groups, scratch);
  const auto most = static_cast<std::uint32_t>(p.max_cat_threshold);
  for (std::uint32_t i = t; i < n; i += search_threads) {
    const double weight = sum_h(scratch.level_sums[i]) + p.cat_smooth;
    scratch.keys[i] = weight > 0 ? sum_g(scratch.level_sums[i]) / weight : 0.0;
  }
  __syncthreads();
  for (std::uint32_t i = t; i < n; i += search_threads) {
    const double key = scratch.keys[i];
    std::uint32_t rank = 0;
    for (std::uint32_t j = 0; j < n; ++j)
      rank += scratch.keys[j] < key || (scratch.keys[j] == key && j < i) ? 1 : 0;
    scratch.order[rank] = static_cast<std::uint16_t>(i);
  }
  __syncthreads();
  // At most 256 codes are seen: with a pooled entry, at least one of them is in it.
  const bool is_level = t < n;
  const std::uint32_t at = is_level ? scratch.order[t] : 0;
  const std::int64_t left =
      prefix_sum(is_level ? scratch.level_sums[at] : 0, scratch.prefix_buffer);
  const std::int64_t rows =
      prefix_sum(is_level ? scratch.level_rows[at] : 0, scratch.prefix_buffer);
  Candidate lane_best{best.score, 0xffffffffu};
  if (t + 1 < n && (t + 1 <= most || n - (t + 1) <= most))
    lane_best = better(lane_best, {score_of_set(p, node, left, rows) + shift, t});
  const Candidate candidate = best_of_block(lane_best);
  if (!(candidate.score > best.score)) return;
  __shared__ std::int64_t left_sum;
  if (t == candidate.index) left_sum = left;
  if (t < 8) scratch.left[t] = 0;
  __syncthreads();
  best = {candidate.score, left_sum, candidate.index, false, false};
  if (t <= candidate.index && scratch.codes[at] < pooled_levels)
    add_code(scratch.left, scratch.codes[at]);
  __syncthreads();
  bool with_pool = false;
  for (std::uint32_t i = 0; i <= candidate.index; ++i)
    with_pool |= scratch.codes[scratch.order[i]] == pooled_levels;
  if (with_pool && t < 8) scratch.left[t] |= scratch.pool[t];
  __syncthreads();
}

// The codes on the left of a split, those unseen in the node included; by one thread.
inline void write_set(const SetNode& node, const GroupColumn* groups, std::uint32_t feature,
                      const SetSplit& best, LevelScratch& scratch, FoundSplit* out) {
  if (best.is_in_order) {
    for (unsigned& word : scratch.left) word = 0;
    for (std::uint32_t i = 0; i < best.index; ++i) add_code(scratch.left, groups->order[i]);
    if (best.missing_left) add_code(scratch.left, node.missing);
  }
  const bool missing_seen = has_code(scratch.seen, node.missing);
  const bool missing_left = missing_seen ? has_code(scratch.left, node.missing)
                                         : 2 * std::int64_t{sum_h(best.left)} >= sum_h(node.total);
  if (missing_left && best.is_in_order) {
    for (unsigned& word : scratch.seen) word = 0;
    for (std::uint32_t i = 0; i < groups->n; ++i) add_code(scratch.seen, groups->order[i]);
  }
  CodeSet set;
  for (std::uint32_t w = 0; w < 8; ++w) {
    const std::uint64_t word = missing_left ? scratch.left[w] | ~scratch.seen[w] : scratch.left[w];
    set.words[w / 2] |= word << (32 * (w % 2));
  }
  *out = {best.score,
          best.left,
          0,
          0,
          feature,
          1,
          static_cast<std::uint8_t>(missing_left),
          static_cast<std::uint8_t>(missing_seen),
          1,
          set};
}

// The best split of one category in one node.
inline void search_levels(GainParams p, const BatchWork& batch, const FeatureColumn* columns) {
  __shared__ LevelScratch scratch;
  const auto [search, column, all_rows, feature, channels, first_slot, out] =
      own_search(p, batch, columns);
  const std::int64_t* slots = histogram_of(batch, search, column, channels) + first_slot;
  slots = slots_by_code(column, search, all_rows, channels, slots);
  const std::uint32_t t = threadIdx.x;
  const SetNode node{search.total, all_rows, column.n_bins, channels > 1};
  const bool is_code = t < column.n_bins + column.has_missing;
  scratch.sums[t] = is_code ? slots[t * channels] : 0;
  scratch.rows[t] = is_code && node.counted ? slots[t * channels + 1] : 0;
  if (t < 8) scratch.seen[t] = scratch.pool[t] = scratch.left[t] = 0;
  __syncthreads();
  const bool is_seen = scratch.sums[t] != 0 || scratch.rows[t] != 0;
  if (is_seen) add_code(scratch.seen, t);
  const std::int64_t n = sum_of_block(is_seen ? 1 : 0, scratch);  // and waits for the set
  SetSplit best{search.floor, 0, 0, false, false};
  if (n >= 2) {
    if (column.groups != nullptr) try_in_order(p, node, *column.groups, scratch, best);
    if (n <= p.max_cat_to_onehot)
      try_each(p, node, column.groups, scratch, best);
    else
      try_prefixes(p, node, column.groups, scratch, best);
  }
  if (t != 0) return;
  out->is_valid = 0;
  if (best.score > search.floor) write_set(node, column.groups, feature, best, scratch, out);
}

extern "C" __global__ void __launch_bounds__(search_threads)
    search_mixed(GainParams p, BatchWork batch, const FeatureColumn* columns) {
  const NodeSearch& search = batch.searches[blockIdx.y];
  if (blockIdx.x >= search.n_features) return;
  const FeatureColumn& column = columns[batch.features[search.first_feature + blockIdx.x]];
  if (column.is_category)
    search_levels(p, batch, columns);
  else if (column.n_bins >= search_threads)
    is_plain(p) ? search_bins<true>(p, batch, columns) : search_bins<false>(p, batch, columns);
  else if (is_plain(p))
    search_feature<true, true>(p, batch, columns);
  else
    search_feature<false, true>(p, batch, columns);
  if (is_last(batch.n_done + blockIdx.y, search.n_features))
    choose_feature(batch, blockIdx.y, columns);
}
