// The best split of a node among features, by a group of threads. The same scores, of equals the
// same, as in grow/search/split.h and grow/split.
#pragma once

#include "base/random.h"
#include "grow/device/kernels/tree_sources.cuh"
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

// A split of a feature: the higher score; of equals the lower place.
struct Cut {
  double score;
  std::uint32_t place, unused;
};
constexpr std::uint32_t no_place = 0xffffffffu;

inline Cut better_cut(const Cut& a, const Cut& b) {
  return b.score > a.score || (b.score == a.score && b.place < a.place) ? b : a;
}
inline std::uint32_t lower_of(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}
inline std::uint32_t higher_of(std::uint32_t a, std::uint32_t b) {
  return a < b ? b : a;
}
inline std::int64_t both_sums(std::int64_t a, std::int64_t b) {
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

// The split of a feature after a thread's entry, with missing values on the right and on the left.
struct EntryCuts {
  double right, left;               // scores
  std::int64_t left_h;              // over all outputs, without missing values
  std::int64_t missing_h, total_h;  // of the node
  bool not_right, not_left;         // forbidden
  bool seen;                        // some row of the node has the code
  bool has_missing;
};

template <class Source>
inline EntryCuts score_entry(const TreeWork& w, const Source& source, const std::int64_t* totals,
                             const TreeColumn& column, bool is_entry) {
  const GainParams& p = w.gain;
  const auto outputs = static_cast<std::uint32_t>(p.outputs);
  const auto channels = static_cast<std::uint32_t>(p.channels);
  // A code without rows gives the split of the one before it.
  const bool skips = channels == 1 && w.cut_values == nullptr;
  EntryCuts cuts{0, 0, 0, 0, 0, !is_entry, !is_entry, false, false};
#pragma unroll 1
  for (std::uint32_t c = 0; c < channels; ++c) {
    const ChannelSums sums = source.read(w, column, c);
    const std::int64_t total = totals[c];
    cuts.seen |= is_entry && sums.own != 0;
    cuts.has_missing |= sums.missing != 0;
    if (c == outputs) {  // counts of rows
      const std::int64_t right = sums.before, left = sums.before + sums.missing;
      cuts.not_right |= right < p.min_count || total - right < p.min_count;
      cuts.not_left |= left < p.min_count || total - left < p.min_count;
      continue;
    }
    cuts.missing_h += sum_h(sums.missing);
    cuts.total_h += sum_h(total);
    cuts.left_h += sum_h(sums.before);
    if (skips && sums.own == 0) {
      cuts.not_right = cuts.not_left = true;
      continue;
    }
    const int n_sides = column.has_missing && (channels > 1 || sums.missing != 0) ? 2 : 1;
#pragma unroll 1
    for (int side = 0; side < n_sides && is_entry; ++side) {
      const std::int64_t left = side == 0 ? sums.before : sums.before + sums.missing;
      const double score = cut_score(p, left, total - left);
      // A mean of 0 has infinite deviance for any positive count.
      const bool forbidden =
          p.criterion == Criterion::poisson && (sum_g(left) >= 0 || sum_g(total - left) >= 0);
      (side == 0 ? cuts.right : cuts.left) += score;
      (side == 0 ? cuts.not_right : cuts.not_left) |= forbidden;
    }
  }
  return cuts;
}

// The bin of a random cut of a feature; n_bins: there is none.
template <class Group>
inline std::uint32_t random_bin(const TreeWork& w, std::uint64_t path, std::uint32_t feature,
                                const TreeColumn& column, std::uint32_t code,
                                const EntryCuts& cuts) {
  const std::uint32_t low = Group::all(cuts.seen ? code : column.n_bins, lower_of);
  const std::uint32_t high = Group::all(cuts.seen ? code : 0u, higher_of);
  if (low == column.n_bins || (low == high && !cuts.has_missing)) return column.n_bins;
  if (low == high) return column.n_bins - 1;  // all values on the left, missing rows on the right
  const double* values = w.cut_values + static_cast<std::uint64_t>(feature) * most_codes;
  const std::uint64_t key = cut_key(mix_bits(w.cut_key + path), feature);
  return draw_cut(key, [=](std::uint32_t bin) { return values[bin]; }, most_codes, low, high);
}

// Takes the best split of a feature where it beats the best one so far; of equal ones that of the
// first feature. Returns true if the feature varies in the node.
template <class Group, class Source>
inline bool search_feature(const TreeWork& w, Source& source, const std::int64_t* totals,
                           std::uint64_t path, std::uint32_t feature, NodeBest& best) {
  const TreeColumn column = w.columns[feature];
  source.open(w, column);
  const std::uint32_t code = source.code();
  const bool is_entry = source.is_entry(column);
  const EntryCuts cuts = score_entry(w, source, totals, column, is_entry);
  const std::int64_t min_h = std::int64_t{w.gain.min_h} * w.gain.outputs;
  std::uint32_t place = code;
  bool is_candidate = is_entry;
  if (w.cut_values != nullptr) {
    place = random_bin<Group>(w, path, feature, column, code, cuts);
    const std::uint32_t at = Group::all(is_entry && code <= place ? code + 1 : 0u, higher_of);
    is_candidate = is_entry && code + 1 == at && place < column.n_bins;
  }
  Cut own{best.score, no_place, 0};
  const std::uint32_t end = cuts.has_missing ? column.n_bins : column.n_bins - 1;
  const auto try_side = [&](double score, std::int64_t left_h, bool forbidden, std::uint32_t at) {
    if (is_candidate && !forbidden && left_h >= min_h && cuts.total_h - left_h >= min_h)
      own = better_cut(own, {score, at, 0});
  };
  if (place < end) try_side(cuts.right, cuts.left_h, cuts.not_right, place);
  if (cuts.has_missing && place + 1 < column.n_bins)
    try_side(cuts.left, cuts.left_h + cuts.missing_h, cuts.not_left, most_codes + place);
  const Cut found = Group::all(own, better_cut);
  const bool is_better = found.place != no_place &&
                         (found.score > best.score ||
                          (best.feature >= 0 && static_cast<std::int32_t>(feature) < best.feature));
  if (!is_better)
    return Group::all(cuts.seen ? 1u : 0u, [](std::uint32_t a, std::uint32_t b) { return a + b; }) +
               (cuts.has_missing ? 1 : 0) >
           1;
  best.score = found.score;
  best.feature = static_cast<std::int32_t>(feature);
  best.missing_left = found.place >= most_codes;
  best.missing_seen = cuts.has_missing;
  best.bin = found.place % most_codes;
  best.left_h = Group::all(is_candidate && place == best.bin ? cuts.left_h : 0, both_sums) +
                (best.missing_left ? cuts.missing_h : 0);
  best.next = Group::all(cuts.seen && code > best.bin ? code : column.n_bins, lower_of);
  return true;
}

// A feature by its place in a node's order of features: that of their hashes.
struct Ranked {
  std::uint64_t hash, feature;
};
constexpr std::uint64_t no_feature = ~std::uint64_t{0};

inline Ranked lower_rank(const Ranked& a, const Ranked& b) {
  return b.hash < a.hash ? b : a;
}

inline std::uint64_t column_key(const TreeWork& w, std::uint64_t path) {
  return counter_hash(w.seed, Purpose::node_columns, w.number, path);
}
inline std::uint64_t column_hash(std::uint64_t key, std::uint32_t feature) {
  return mix_bits(mix_bits(key + feature));
}

// The best split of a node after n features, the last of which has the hash `last`. All drawn
// features may be constant in the node: then further ones are tried up to the first that is not, as
// in grow/split/random_cuts.cpp.
template <class Group, class Source>
inline void search_node(const TreeWork& w, Source& source, const std::int64_t* totals,
                        std::uint64_t path, std::uint32_t n, std::uint64_t last, NodeBest& best) {
  const std::uint64_t key = column_key(w, path);
  const bool draws = w.n_drawn < w.n_features;
  bool varies = false;
#pragma unroll 1
  for (; n < w.n_drawn || (!varies && n < w.n_features); ++n) {
    std::uint32_t feature = n;
    if (draws) {
      Ranked own{no_feature, no_feature};
#pragma unroll 1
      for (std::uint32_t f = Group::rank(); f < w.n_features; f += Group::size) {
        const std::uint64_t hash = column_hash(key, f);
        if ((hash > last || n == 0) && hash <= own.hash) own = {hash, f};
      }
      const Ranked next = Group::all(own, lower_rank);
      last = next.hash;
      feature = static_cast<std::uint32_t>(next.feature);
    }
    varies |= search_feature<Group>(w, source, totals, path, feature, best);
  }
}
