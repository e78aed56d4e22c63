// Sums of a categorical feature's levels in a node -> the best split by a set of levels. About 20
// ns a level, mostly for sorting. Single-threaded.
//
// With few levels, each is tried against all others (one-vs-rest). With more, the best of the
// 2^(n-1) sets is a prefix of the levels sorted by G / H (Fisher 1958 for squares; his proof needs
// only that the score of a side is convex in G and H). Rare levels overfit, so four parameters
// regularise: levels of less hessian than `min_cat_weight` are pooled into one; `cat_smooth` is
// added to H, so that levels of few rows are not sorted first or last; `cat_l2` is added to lambda
// in the gain of such a split, for both children and the node; and a set has at most
// `max_cat_threshold` levels.
//
// Grouped categories have a second order (grow/search/groups.h).
//
// Missing values are a level of their own. Levels unseen in the node go with them or, if no value
// is missing, to the child of larger hessian.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <cstring>  // memset

#include "grow/search/gain.h"
#include "grow/search/groups.h"
#include "grow/search/level_scores.h"
#include "grow/search/search_data.h"
#include "grow/search/split.h"
#include "tree/rule.h"

namespace arboost::ARBOOST_ISA {
namespace {

template <bool plain>
void try_each(const GainParams& p, const std::int64_t* totals, SplitScratch& scratch,
              FeatureSplit& best) {
  const LevelSums& levels = scratch.levels;
  for (std::size_t i = 0; i < levels.n; ++i) {
    if (is_shared(levels, levels.codes[i])) continue;
    const std::int64_t* sums = levels.sums.data() + i * static_cast<std::size_t>(p.channels);
    const double score = score_of_set<plain>(p, sums, totals);
    if (!(score > best.score)) continue;
    CodeSet single_level;
    put(single_level, levels.codes[i], true);
    take_set(p, score, single_level, sums, scratch, best);
  }
}

// Pools all rare levels and shared codes into one, the last. Pooled levels stay on one side.
void pool_rare(const GainParams& p, LevelSums& levels) {
  const auto channels = static_cast<std::size_t>(p.channels);
  const double least_h = levels.groups == nullptr ? p.min_cat_h : p.min_group_h;
  const double least = least_h * p.outputs;  // the mean over outputs counts
  std::int64_t* pooled = levels.pooled.data();
  for (std::size_t c = 0; c < channels; ++c) pooled[c] = 0;
  levels.pool = {};
  std::size_t kept = 0, n_pooled = 0;
  bool any_shared = false;
  for (std::size_t i = 0; i < levels.n; ++i) {
    const std::int64_t* sums = levels.sums.data() + i * channels;
    const auto h = static_cast<double>(sum_of_h(sums, static_cast<std::size_t>(p.outputs)));
    const bool shared = is_shared(levels, levels.codes[i]);
    const bool rare = h < least || shared;
    any_shared |= shared;
    if (rare) put(levels.pool, levels.codes[i], true);
    std::int64_t* to = rare ? pooled : levels.sums.data() + kept * channels;
    for (std::size_t c = 0; c < channels; ++c) to[c] = rare ? to[c] + sums[c] : sums[c];
    if (!rare) levels.codes[kept++] = levels.codes[i];
    n_pooled += rare ? 1 : 0;
  }
  levels.n = kept;
  if (n_pooled == 0) return;
  for (int w = 0; any_shared && w < 4; ++w) {  // those that the node lacks stay with the others
    levels.pool.words[w] |= levels.groups->shared.words[w];
    levels.seen.words[w] |= levels.groups->shared.words[w];
  }
  levels.codes[levels.n] = pool_code;
  for (std::size_t c = 0; c < channels; ++c) levels.sums[levels.n * channels + c] = pooled[c];
  ++levels.n;
}

inline void put_level(CodeSet& set, std::size_t at, const LevelSums& levels) {
  if (levels.codes[at] != pool_code) return put(set, levels.codes[at], true);
  for (int w = 0; w < 4; ++w) set.words[w] |= levels.pool.words[w];
}

// Shell sort of the levels by key, ties by code: short code, and fast for a few hundred.
void sort_levels(LevelSums& levels) {
  const double* keys = levels.keys;
  std::uint16_t* order = levels.order;
  for (std::size_t i = 0; i < levels.n; ++i) order[i] = static_cast<std::uint16_t>(i);
  for (const std::size_t gap : {132u, 57u, 23u, 10u, 4u, 1u})
    for (std::size_t i = gap; i < levels.n; ++i) {
      const std::uint16_t at = order[i];
      std::size_t j = i;
      for (; j >= gap; j -= gap) {
        const std::uint16_t before = order[j - gap];
        if (keys[before] < keys[at] || (keys[before] == keys[at] && before < at)) break;
        order[j] = before;
      }
      order[j] = at;
    }
}

// Sorts the levels by the smoothed mean gradient of one output.
void order_levels(const GainParams& p, int output, LevelSums& levels) {
  for (std::size_t i = 0; i < levels.n; ++i) {
    const std::int64_t sum = levels.sums[i * static_cast<std::size_t>(p.channels) + output];
    const double weight = sum_h(sum) + p.cat_smooth;
    levels.keys[i] = weight > 0 ? sum_g(sum) / weight : 0.0;
  }
  sort_levels(levels);
}

template <bool plain>
void try_prefixes(const GainParams& params, const std::int64_t* totals, SplitScratch& scratch,
                  FeatureSplit& best) {
  GainParams p = params;
  p.reg_lambda += p.cat_l2;
  // Scores must be comparable between features, so only the gain over the node's score counts.
  const double shift = score_of_node(params, totals) - score_of_node(p, totals);
  const auto channels = static_cast<std::size_t>(p.channels);
  const auto most = static_cast<std::size_t>(p.max_cat_threshold);
  LevelSums& levels = scratch.levels;
  pool_rare(p, levels);
  std::int64_t* running = scratch.sides.data();
  for (int output = 0; output < p.outputs; ++output) {
    order_levels(p, output, levels);
    CodeSet set;
    for (std::size_t c = 0; c < channels; ++c) running[c] = 0;
    for (std::size_t i = 0; i + 1 < levels.n; ++i) {
      const std::size_t at = levels.order[i];
      put_level(set, at, levels);
      for (std::size_t c = 0; c < channels; ++c) running[c] += levels.sums[at * channels + c];
      const std::size_t n_left = i + 1, n_right = levels.n - n_left;
      if (n_left > most && n_right > most) continue;
      const double score = score_of_set<plain>(p, running, totals) + shift;
      if (score > best.score) take_set(p, score, set, running, scratch, best);
    }
  }
}

// Missing values that the node lacks go to the child of larger hessian. Levels unseen in the node,
// and all other codes, go where missing values go; of a cut in the order of groups, only codes of
// no group do.
void complete_set(const GainParams& p, const std::int64_t* totals, std::uint32_t missing,
                  bool in_order, SplitScratch& scratch, FeatureSplit& best) {
  const CodeSet& seen = scratch.levels.seen;
  best.missing_seen = holds(seen, missing);
  const auto outputs = static_cast<std::size_t>(p.outputs);
  best.missing_left = best.missing_seen
                          ? holds(best.left, missing)
                          : 2 * sum_of_h(scratch.left.data(), outputs) >= sum_of_h(totals, outputs);
  if (!best.missing_left) return;
  const LevelGroups* groups = scratch.levels.groups;
  const CodeSet known = in_order ? first_groups(*groups, groups->order.size()) : seen;
  for (int w = 0; w < 4; ++w) best.left.words[w] |= ~known.words[w];
}

// The best split by a set of those levels that scratch.levels holds; `missing` is the missing code.
FeatureSplit best_of_levels(const GainParams& p, std::uint32_t missing, const std::int64_t* totals,
                            double floor, SplitScratch& scratch) {
  FeatureSplit best;
  best.score = floor;
  best.by_set = true;
  const std::size_t n = scratch.levels.n;
  if (n < 2) return best;
  if (scratch.levels.groups != nullptr)
    (is_plain(p) ? try_in_order<true> : try_in_order<false>)(p, missing, totals, scratch, best);
  const double score_in_order = best.score;
  const bool each = n <= static_cast<std::size_t>(p.max_cat_to_onehot);
  const auto search = is_plain(p) ? (each ? try_each<true> : try_prefixes<true>)
                                  : (each ? try_each<false> : try_prefixes<false>);
  search(p, totals, scratch, best);
  best.is_valid = best.score > floor;
  const bool in_order = scratch.levels.groups != nullptr && best.score == score_in_order;
  if (best.is_valid) complete_set(p, totals, missing, in_order, scratch, best);
  return best;
}

// Appends a level unless its rows have zero weight.
inline void add_level(const GainParams& p, std::uint32_t code, const std::int64_t* sums,
                      LevelSums& levels) {
  if (!any_nonzero(sums, telling_channels(p))) return;
  const int channels = p.channels;
  put(levels.seen, code, true);
  levels.codes[levels.n] = code;
  std::int64_t* level_sums = levels.sums.data() + levels.n * static_cast<std::size_t>(channels);
  for (int c = 0; c < channels; ++c) level_sums[c] = sums[c];
  ++levels.n;
}

// From the feature's slots: one for each level, and one for missing rows.
FeatureSplit find_set(const GainParams& p, const std::int64_t* feature_hist, std::size_t n_bins,
                      bool has_missing, const std::int64_t* totals, double floor,
                      SplitScratch& scratch) {
  scratch.levels.clear();
  for (std::size_t code = 0; code < n_bins + (has_missing ? 1 : 0); ++code)
    add_level(p, static_cast<std::uint32_t>(code),
              feature_hist + code * static_cast<std::size_t>(p.channels), scratch.levels);
  return best_of_levels(p, static_cast<std::uint32_t>(n_bins), totals, floor, scratch);
}

FeatureSplit find_split(const GainParams& p, const std::int64_t* feature_hist, FeatureCodes codes,
                        const std::int64_t* totals, double floor, SplitScratch& scratch) {
  const auto find = codes.by_set ? find_set : find_threshold;
  return find(p, feature_hist, codes.n_bins, codes.has_missing, totals, floor, scratch);
}

// From codes in scratch.bins and running sums over them in scratch.prefix, as small nodes have
// them.
FeatureSplit find_set_listed(const GainParams& p, std::size_t n_codes, std::uint32_t n_bins,
                             const std::int64_t* totals, double floor, SplitScratch& scratch) {
  const auto channels = static_cast<std::size_t>(p.channels);
  std::int64_t* code_sums = scratch.sides.data();
  scratch.levels.clear();
  for (std::size_t i = 0; i < n_codes; ++i) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::int64_t* at = scratch.prefix.data() + c * scratch.stride + i;
      code_sums[c] = at[0] - (i == 0 ? 0 : at[-1]);
    }
    add_level(p, scratch.bins[i], code_sums, scratch.levels);
  }
  return best_of_levels(p, n_bins, totals, floor, scratch);
}

// From rows whose ranks are the codes of their levels.
FeatureSplit find_set_sorted(const GainParams& p, const SortedRows& rows,
                             const std::int64_t* totals, double floor, SplitScratch& scratch) {
  const auto channels = static_cast<std::size_t>(p.channels);
  const auto outputs = static_cast<std::size_t>(p.outputs);
  std::int64_t* slots = scratch.slots.data();
  for (std::size_t i = 0; i < rows.n; ++i) {
    const Element e = rows.elements[i];
    std::int64_t* slot = slots + (e >> 32) * channels;
    for (std::size_t k = 0; k < outputs; ++k) slot[k] += rows.sums.wide[row_of(e) * outputs + k];
    if (rows.sums.counted) ++slot[outputs];
  }
  const FeatureSplit best = find_set(p, slots, rows.n_values, true, totals, floor, scratch);
  std::memset(slots, 0, (std::size_t{rows.n_values} + 1) * channels * sizeof *slots);
  return best;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
