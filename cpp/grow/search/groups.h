// Grouped categories: groups of levels in the order of their mean targets -> the best cut.
//
// The codes of a grouped category have an order, that of their mean targets, and rare levels share
// codes. Two orders are tried: this one, like thresholds of a number, with all codes and no cat_l2;
// and that by gradient, in which the shared codes are one entry. A code of rare levels depends on
// the targets of a row's predecessors, so sets of such codes would fit noise. So would levels of
// few rows, of which there are many: they are pooled below `group_rows` rows of mean hessian, too.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "grow/search/gain.h"
#include "grow/search/level_scores.h"
#include "grow/search/search_data.h"
#include "grow/search/split.h"
#include "tree/level_groups.h"

namespace arboost::ARBOOST_ISA {
namespace {

inline bool is_shared(const LevelSums& levels, std::uint32_t code) {
  return levels.groups != nullptr && holds(levels.groups->shared, code);
}

// The levels in the order of their groups' means; returns their number, without missing values.
std::size_t order_groups(std::uint32_t missing, LevelSums& levels) {
  std::uint8_t index_of[most_level_codes];
  const std::size_t n = levels.n - (levels.codes[levels.n - 1] == missing ? 1 : 0);
  for (std::size_t i = 0; i < n; ++i) index_of[levels.codes[i]] = static_cast<std::uint8_t>(i);
  std::size_t n_ordered = 0;
  const std::vector<std::uint8_t>& order = levels.groups->order;
  for (std::size_t position = 0; n_ordered < n; ++position) {
    if (!holds(levels.seen, order[position])) continue;
    levels.order[n_ordered] = index_of[order[position]];
    levels.places[n_ordered++] = static_cast<std::uint16_t>(position);
  }
  return n;
}

// The best cut in the order of the means of a grouped category, missing values on either side.
template <bool plain>
void try_in_order(const GainParams& p, std::uint32_t missing, const std::int64_t* totals,
                  SplitScratch& scratch, FeatureSplit& best) {
  LevelSums& levels = scratch.levels;
  const auto channels = static_cast<std::size_t>(p.channels);
  const auto sums_of = [&](std::size_t i) { return levels.sums.data() + i * channels; };
  const std::size_t n = order_groups(missing, levels);
  const bool has_missing = n < levels.n;
  std::int64_t* running = scratch.sides.data();
  std::int64_t* with_missing = running + channels;
  for (std::size_t c = 0; c < channels; ++c) {
    running[c] = 0;
    with_missing[c] = has_missing ? sums_of(n)[c] : 0;
  }
  std::size_t cut = n;  // the first level on the right
  bool missing_left = false;
  const auto try_cut = [&](std::size_t i, bool is_missing_left, const std::int64_t* sums) {
    const double score = score_of_set<plain>(p, sums, totals);
    if (!(score > best.score)) return;
    take_set(p, score, {}, sums, scratch, best);
    cut = i + 1;
    missing_left = is_missing_left;
  };
  const double floor = best.score;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t* sums = sums_of(levels.order[i]);
    for (std::size_t c = 0; c < channels; ++c) {
      running[c] += sums[c];
      with_missing[c] += sums[c];
    }
    if (i + 1 < n || has_missing) try_cut(i, false, running);
    if (i + 1 < n && has_missing) try_cut(i, true, with_missing);
  }
  if (!(best.score > floor)) return;
  // Groups that the node lacks go with the nearer neighbour.
  const LevelGroups& groups = *levels.groups;
  const std::size_t n_left =
      cut < n ? (levels.places[cut - 1] + levels.places[cut] + 1u) / 2 : groups.order.size();
  best.left = first_groups(groups, n_left);
  put(best.left, missing, missing_left);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
