// The best split of one feature in a node, by a warp. The same scores, of equals the same, as in
// grow/search/split.h and grow/split.
#pragma once

#include "base/random.h"
#include "grow/device/kernels/forests/tree_sources.cuh"
#include "grow/search/node_score.h"
#include "grow/search/random_cut.h"
#include "loss/functions.h"

// The best split so far. The score begins as its lower bound.
struct NodeBest {
  double score;
  std::int64_t left_h;  // over all outputs
  std::uint32_t bin, next;
  std::int32_t feature;  // -1: none
  std::uint32_t missing_left, missing_seen;
};

// A split of a feature: the higher score; of equal scores, the lower candidate.
struct Cut {
  double score;
  std::uint32_t candidate, unused;
};
constexpr std::uint32_t no_candidate = 0xffffffffu;

inline Cut better_cut(const Cut& a, const Cut& b) {
  return b.score > a.score || (b.score == a.score && b.candidate < a.candidate) ? b : a;
}
inline std::uint32_t lower_of(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}
inline std::uint32_t higher_of(std::uint32_t a, std::uint32_t b) {
  return a < b ? b : a;
}

inline std::uint32_t sum_of_two(std::uint32_t a, std::uint32_t b) {
  return a + b;
}

// One copy of each: compilation takes long.
__attribute__((noinline)) inline double log_at(double x) {
  return device::log_of(x);
}
__attribute__((noinline)) inline double log_side(double h_per_g, bool two_classes, double g,
                                                 double h) {
  GainParams p;
  p.h_per_g = h_per_g;
  p.two_classes = two_classes;
  return log_score(p, g, h, log_at);
}

inline double cut_score(const GainParams& p, std::int64_t left, std::int64_t right) {
  if (p.criterion == Criterion::quadratic)
    return split_score<true, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
  return log_side(p.h_per_g, p.two_classes, sum_g(left), sum_h(left)) +
         log_side(p.h_per_g, p.two_classes, sum_g(right), sum_h(right));
}

// The split of a feature after an entry, with missing values on the right and on the left.
struct EntryCuts {
  double right, left;   // scores
  std::int64_t left_h;  // over all outputs, without missing values
};

// Splits of a feature, of one lane; bits are chunks of entries.
struct FeatureCuts {
  EntryCuts* cuts;                    // [n_chunks][lane], in shared memory
  std::uint32_t seen;                 // some row of the node has the code
  std::uint32_t not_right, not_left;  // forbidden splits
  std::int64_t missing_h, total_h;    // of the node
  bool has_missing;
};

// Adds the scores of one output after an entry.
inline void add_scores(const TreeWork& w, const TreeColumn& column, std::int64_t up_to,
                       std::int64_t missing, std::int64_t total, std::uint32_t bit, EntryCuts& cut,
                       FeatureCuts& all) {
  const GainParams& p = w.gain;
  const int n_sides = column.has_missing && (p.channels > 1 || missing != 0) ? 2 : 1;
#pragma unroll 1
  for (int side = 0; side < n_sides; ++side) {
    const std::int64_t left = side == 0 ? up_to : up_to + missing;
    (side == 0 ? cut.right : cut.left) += cut_score(p, left, total - left);
    // A mean of 0 has infinite deviance for any positive count.
    if (p.criterion == Criterion::poisson && (sum_g(left) >= 0 || sum_g(total - left) >= 0))
      (side == 0 ? all.not_right : all.not_left) |= bit;
  }
}

template <class Source>
inline void score_feature(const TreeWork& w, Source& source, const std::int64_t* totals,
                          const TreeColumn& column, FeatureCuts& all) {
  const GainParams& p = w.gain;
  const auto outputs = static_cast<std::uint32_t>(p.outputs);
  const auto channels = static_cast<std::uint32_t>(p.channels);
  // A code without rows gives the split of the one before it.
  const bool skips = channels == 1 && w.cut_values == nullptr;
#pragma unroll 1
  for (std::uint32_t c = 0; c < channels; ++c) {
    const std::int64_t missing = source.read(w, column, c), total = totals[c];
    all.has_missing |= missing != 0;
    if (c < outputs) {
      all.missing_h += sum_h(missing);
      all.total_h += sum_h(total);
    }
    std::int64_t before = 0;
#pragma unroll 1
    for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
      const auto [of_code, up_to] = source.sums(column, chunk, before);
      if (!source.is_entry(column, chunk)) continue;
      const std::uint32_t bit = 1u << chunk;
      if (of_code != 0) all.seen |= bit;
      if (c == outputs) {  // counts of rows
        const std::int64_t with = up_to + missing;
        if (up_to < p.min_count || total - up_to < p.min_count) all.not_right |= bit;
        if (with < p.min_count || total - with < p.min_count) all.not_left |= bit;
        continue;
      }
      EntryCuts& cut = all.cuts[chunk * 32 + lane_of()];
      if (c == 0) cut = {0, 0, 0};
      cut.left_h += sum_h(up_to);
      if (!skips || of_code != 0)
        add_scores(w, column, up_to, missing, total, bit, cut, all);
      else
        all.not_right |= bit, all.not_left |= bit;
    }
  }
}

// The bin of a random cut of a feature; n_bins: there is none.
template <class Source>
inline std::uint32_t random_bin(const TreeWork& w, std::uint64_t path, std::uint32_t feature,
                                const TreeColumn& column, const Source& source,
                                const FeatureCuts& all) {
  std::uint32_t low = column.n_bins, high = 0;
  for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
    if (!(all.seen >> chunk & 1)) continue;
    low = lower_of(low, source.code(chunk));
    high = higher_of(high, source.code(chunk));
  }
  low = WarpGroup::all(low, lower_of);
  high = WarpGroup::all(high, higher_of);
  if (low == column.n_bins || (low == high && !all.has_missing)) return column.n_bins;
  if (low == high) return column.n_bins - 1;  // all values on the left, missing rows on the right
  const double* values = w.cut_values + static_cast<std::uint64_t>(feature) * most_codes;
  const std::uint64_t key = cut_key(mix_bits(w.cut_key + path), feature);
  return draw_cut(key, [=](std::uint32_t bin) { return values[bin]; }, most_codes, low, high);
}

// True if a split of a feature beats the best one so far; of equal ones that of the first feature
// does.
inline bool beats(const Cut& cut, std::uint32_t feature, const NodeBest& best) {
  return cut.candidate != no_candidate &&
         (cut.score > best.score ||
          (best.feature >= 0 && static_cast<std::int32_t>(feature) < best.feature));
}

// search_column for a number. `cuts` is shared memory of the warp, an entry per code.
template <class Source>
inline bool search_feature(const TreeWork& w, Source& source, EntryCuts* cuts,
                           const std::int64_t* totals, std::uint64_t path, std::uint32_t feature,
                           NodeBest& best) {
  const TreeColumn column = w.columns[feature];
  source.open(w, column);
  FeatureCuts all{cuts, 0, 0, 0, 0, 0, false};
  score_feature(w, source, totals, column, all);
  // The candidate of a split is its bin. That of a random cut may have no entry: the last one
  // before it has the same sums.
  const bool is_random = w.cut_values != nullptr;
  std::uint32_t random = 0, at = 0;
  if (is_random) {
    random = random_bin(w, path, feature, column, source, all);
    for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk)
      if (source.is_entry(column, chunk) && source.code(chunk) <= random)
        at = higher_of(at, source.code(chunk) + 1);
    at = random < column.n_bins ? WarpGroup::all(at, higher_of) : 0;
  }
  const auto candidate_of = [&](std::uint32_t chunk) {  // or no_candidate
    const std::uint32_t code = source.code(chunk);
    if (!source.is_entry(column, chunk) || (is_random && code + 1 != at)) return no_candidate;
    return is_random ? random : code;
  };
  const std::int64_t min_h = std::int64_t{w.gain.min_h} * w.gain.outputs;
  const std::uint32_t end = all.has_missing ? column.n_bins : column.n_bins - 1;
  Cut lane_cut{best.score, no_candidate, 0};
#pragma unroll 1
  for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
    const std::uint32_t candidate = candidate_of(chunk);
    if (candidate == no_candidate) continue;
    const EntryCuts& cut = cuts[chunk * 32 + lane_of()];
    const std::int64_t h = cut.left_h, with = cut.left_h + all.missing_h;
    if (candidate < end && !(all.not_right >> chunk & 1) && h >= min_h && all.total_h - h >= min_h)
      lane_cut = better_cut(lane_cut, {cut.right, candidate, 0});
    if (all.has_missing && candidate + 1 < column.n_bins && !(all.not_left >> chunk & 1) &&
        with >= min_h && all.total_h - with >= min_h)
      lane_cut = better_cut(lane_cut, {cut.left, most_codes + candidate, 0});
  }
  const Cut best_cut = WarpGroup::all(lane_cut, better_cut);
  if (!beats(best_cut, feature, best)) {
    const std::uint32_t n_seen = WarpGroup::all(std::uint32_t(__popc(all.seen)), sum_of_two);
    return n_seen + (all.has_missing ? 1 : 0) > 1;
  }
  best.score = best_cut.score;
  best.feature = static_cast<std::int32_t>(feature);
  best.missing_left = best_cut.candidate >= most_codes;
  best.missing_seen = all.has_missing;
  best.bin = best_cut.candidate % most_codes;
  std::int64_t left_h = 0;
  std::uint32_t next = column.n_bins;
  for (std::uint32_t chunk = 0; chunk < Source::n_chunks; ++chunk) {
    if (candidate_of(chunk) == best.bin) left_h = cuts[chunk * 32 + lane_of()].left_h;
    if ((all.seen >> chunk & 1) && source.code(chunk) > best.bin)
      next = lower_of(next, source.code(chunk));
  }
  best.left_h = warp_sum(left_h) + (best.missing_left ? all.missing_h : 0);
  best.next = WarpGroup::all(next, lower_of);
  return true;
}

inline std::uint64_t column_key(const TreeWork& w, std::uint64_t path) {
  return counter_hash(w.seed, Purpose::node_columns, w.number, path);
}
inline std::uint64_t column_hash(std::uint64_t key, std::uint32_t feature) {
  return mix_bits(mix_bits(key + feature));
}
