// The best split of a category in a node, by a warp: the same sets of levels as in
// grow/search/category.h and grow/split/random_cuts.cpp.
#pragma once

#include "grow/device/kernels/forests/tree_search.cuh"
#include "tree/split_rule.h"

// Shared memory of a warp that searches a feature: splits of entries, an order of levels, and the
// levels on the left of its best split by a set.
struct SearchRoom {
  EntryCuts* cuts;
  std::uint8_t* order;
  CodeSet* levels;
};

inline CodeSet either_set(CodeSet a, const CodeSet& b) {
  for (int w = 0; w < 4; ++w) a.words[w] |= b.words[w];
  return a;
}

// Levels as entries, in an order of theirs: the splits after them are those by prefixes.
template <class Source>
struct LevelSource {
  static constexpr std::uint32_t n_chunks = Source::n_chunks;

  Source& source;
  const std::uint8_t* order;  // entries of the source
  std::uint32_t n;

  static std::uint32_t code(std::uint32_t chunk) { return chunk * 32 + lane_of(); }
  bool is_entry(const TreeColumn&, std::uint32_t chunk) const { return code(chunk) < n; }
  std::uint32_t entry(std::uint32_t chunk) const { return order[lower_of(code(chunk), n - 1)]; }
  std::int64_t read(const TreeWork& w, const TreeColumn& column, std::uint32_t channel) const {
    source.read_levels(w, column, channel);
    return 0;  // missing values are a level
  }
  EntrySums sums(const TreeColumn& column, std::uint32_t chunk, std::int64_t& before) const {
    const std::int64_t sum = source.level_sum(entry(chunk));
    return next_sums(is_entry(column, chunk) ? sum : 0, before);
  }
  // The codes of the first levels.
  CodeSet first(std::uint32_t n_first) const {
    CodeSet set;
    for (std::uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
      const std::uint32_t level = source.level_code(entry(chunk));
      if (code(chunk) < n_first) put(set, level, true);
    }
    return WarpGroup::all(set, either_set);
  }
};

// Levels whose rows have some weight; bits are chunks of entries.
template <class Source>
inline std::uint32_t seen_levels(const TreeWork& w, Source& source, const TreeColumn& column) {
  std::uint32_t seen = 0;
#pragma unroll 1
  for (std::uint32_t c = 0; c < w.values.channels; ++c) {
    source.read_levels(w, column, c);
    for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
      const std::int64_t sum = source.level_sum(chunk * 32 + lane_of());
      if (sum != 0 && source.is_level(column, chunk)) seen |= 1u << chunk;
    }
  }
  return seen;
}

template <class Source>
inline CodeSet codes_of_levels(const Source& source, std::uint32_t levels) {
  CodeSet set;
  for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
    const std::uint32_t level = source.level_code(chunk * 32 + lane_of());
    if (levels >> chunk & 1) put(set, level, true);
  }
  return WarpGroup::all(set, either_set);
}

// Orders the levels by key(sum, code), ties by code.
template <class Source, class Key>
inline void order_levels(const Source& source, const TreeColumn& column, std::uint32_t seen,
                         const SearchRoom& room, Key key) {
  constexpr double after_all = 1e300;
  __syncwarp();
#pragma unroll 1
  for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
    const std::uint32_t at = chunk * 32 + lane_of();
    const double level_key = key(source.level_sum(at), source.level_code(at));
    room.cuts[at].left = seen >> chunk & 1 ? level_key : after_all;
  }
  __syncwarp();
  const std::uint32_t end = Source::n_chunks == 1 ? 32 : lower_of(most_codes, column.n_bins + 1);
#pragma unroll 1
  for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
    if (!(seen >> chunk & 1)) continue;
    const std::uint32_t at = chunk * 32 + lane_of();
    const double own_key = room.cuts[at].left;
    std::uint32_t n_before = 0;
    for (std::uint32_t other = 0; other < end; ++other) {
      const double other_key = room.cuts[other].left;
      n_before += other_key < own_key || (other_key == own_key && other < at) ? 1 : 0;
    }
    room.order[n_before] = static_cast<std::uint8_t>(at);
  }
  __syncwarp();
}

// Takes a split of a category: the first levels go left. Levels that the node lacks go with missing
// values or, if no value is missing, to the side of larger hessian.
template <class Source>
inline void take_levels(const LevelSource<Source>& levels, const Cut& cut, std::uint32_t feature,
                        std::uint32_t missing, const CodeSet& seen, std::int64_t total_h,
                        const SearchRoom& room, NodeBest& best) {
  CodeSet left = levels.first(cut.candidate + 1);
  const std::int64_t left_h = room.cuts[cut.candidate].left_h;
  const bool missing_seen = holds(seen, missing);
  const bool missing_left = missing_seen ? holds(left, missing) : 2 * left_h >= total_h;
  best = {cut.score, left_h, 0, 0, static_cast<std::int32_t>(feature), missing_left, missing_seen};
  for (int word = 0; missing_left && word < 4; ++word) left.words[word] |= ~seen.words[word];
  if (lane_of() == 0) *room.levels = left;
  __syncwarp();
}

// The same as search_feature for a category. The best set of levels is a prefix of their order by
// mean, for each output in turn; of two levels the first goes left. A random cut is one set.
template <class Source>
inline bool search_levels(const TreeWork& w, Source& source, const SearchRoom& room,
                          const std::int64_t* totals, std::uint64_t path, std::uint32_t feature,
                          NodeBest& best) {
  const GainParams& p = w.gain;
  TreeColumn column = w.columns[feature];
  source.open(w, column);
  const std::uint32_t seen = seen_levels(w, source, column);
  const std::uint32_t n = WarpGroup::all(std::uint32_t(__popc(seen)), sum_of_two);
  if (n < 2) return false;
  const CodeSet seen_codes = codes_of_levels(source, seen);
  const bool is_random = w.cut_values != nullptr;
  const bool each = static_cast<int>(n) <= p.max_cat_to_onehot;
  CodeSet drawn;
  std::uint32_t n_drawn = 0;
  if (is_random) {
    drawn = draw_levels(seen_codes, cut_key(mix_bits(w.cut_key + path), feature));
    for (const std::uint64_t word : drawn.words) n_drawn += __popcll(word);
  }
  const LevelSource<Source> levels{source, room.order, n};
  const std::int64_t min_h = std::int64_t{p.min_h} * p.outputs;
  const int n_orders = is_random || each ? 1 : p.outputs;
#pragma unroll 1
  for (int output = 0; output < n_orders; ++output) {
    if (p.channels > 1) source.read_levels(w, column, static_cast<std::uint32_t>(output));
    order_levels(source, column, seen, room, [&](std::int64_t sum, std::uint32_t code) {
      if (is_random) return holds(drawn, code & (most_codes - 1)) ? 0.0 : 1.0;
      const double weight = sum_h(sum) + p.cat_smooth;
      return each || !(weight > 0) ? 0.0 : sum_g(sum) / weight;
    });
    FeatureCuts all{room.cuts, 0, 0, 0, 0, 0, false};
    TreeColumn complete = column;
    complete.has_missing = 0;
    score_feature(w, levels, totals, complete, all);
    Cut lane_cut{best.score, no_candidate, 0};
#pragma unroll 1
    for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
      const std::uint32_t at = levels.code(chunk);
      if (at + 1 >= n || (is_random && at + 1 != n_drawn)) continue;
      const EntryCuts& cut = room.cuts[at];
      if (!(all.not_right >> chunk & 1) && cut.left_h >= min_h && all.total_h - cut.left_h >= min_h)
        lane_cut = better_cut(lane_cut, {cut.right, at, 0});
    }
    const Cut cut = WarpGroup::all(lane_cut, better_cut);
    if (beats(cut, feature, best))
      take_levels(levels, cut, feature, column.n_bins, seen_codes, all.total_h, room, best);
  }
  return true;
}

// Takes the best split of a feature where it beats the best one so far; of equal ones that of the
// first feature. Returns true if the feature varies in the node.
template <class Source>
inline bool search_column(const TreeWork& w, Source& source, const SearchRoom& room,
                          const std::int64_t* totals, std::uint64_t path, std::uint32_t feature,
                          NodeBest& best) {
  if (w.columns[feature].is_category)
    return search_levels(w, source, room, totals, path, feature, best);
  return search_feature(w, source, room.cuts, totals, path, feature, best);
}
