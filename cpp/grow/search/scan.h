// The rows of a node, sorted by one feature -> the best split between any two values (exact
// search). About 2 ns a row. Single-threaded.
//
// Blocks of rows pass all steps while in the cache: prefix sums at the last row of each value,
// thinning of the candidates, scores.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "base/types.h"  // prefetch
#include "grow/search/candidates.h"
#include "grow/search/category.h"
#include "grow/search/gain.h"
#include "grow/search/search_data.h"
#include "grow/search/split.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Prefetch distance in rows: sorted rows are scattered in the table.
constexpr std::size_t sums_ahead = 32;

inline std::uint32_t rank_of(Element e) {
  return static_cast<std::uint32_t>(e >> 32);
}

// Appends entries for the values that end in rows [begin, end): their ranks to scratch.bins, the
// running sums up to them to scratch.prefix. The last row of all ends its value in any case.
template <bool single>  // one channel
std::size_t gather_block(const SortedRows& rows, std::size_t begin, std::size_t end,
                         std::size_t n_present, std::size_t m, std::int64_t* running,
                         SplitScratch& scratch) {
  const Element* ARBOOST_RESTRICT e = rows.elements;
  const PackedSum* ARBOOST_RESTRICT wide = rows.sums.wide;
  std::int64_t* ARBOOST_RESTRICT prefix = scratch.prefix.data();
  std::uint32_t* ARBOOST_RESTRICT bins = scratch.bins.data();
  const std::size_t inner = end == n_present ? end - 1 : end;
  // Entries are written for every row and kept for the last one of each value.
  if constexpr (single) {
    std::int64_t sum = running[0];
    const auto add = [&](std::size_t row) {
      sum += wide[row_of(e[row])];
      prefix[m] = sum;
      bins[m] = rank_of(e[row]);
    };
    std::size_t i = begin;
    for (; i < inner && i + sums_ahead < n_present; ++i) {
      prefetch(wide + row_of(e[i + sums_ahead]));
      add(i);
      m += rank_of(e[i]) != rank_of(e[i + 1]) ? 1 : 0;
    }
    for (; i < inner; ++i) {
      add(i);
      m += rank_of(e[i]) != rank_of(e[i + 1]) ? 1 : 0;
    }
    if (inner < end) {
      add(inner);
      ++m;
    }
    running[0] = sum;
  } else {
    const auto outputs = static_cast<std::size_t>(rows.sums.outputs);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t c = 0; c < outputs; ++c) {
        running[c] += wide[row_of(e[i]) * outputs + c];
        prefix[c * scratch.stride + m] = running[c];
      }
      if (rows.sums.counted) prefix[outputs * scratch.stride + m] = running[outputs] += 1;
      bins[m] = rank_of(e[i]);
      m += i == inner || rank_of(e[i]) != rank_of(e[i + 1]) ? 1 : 0;
    }
  }
  return m;
}

// Both passes over the entries of a block; best[0] has missing values on the right, best[1] on the
// left. Bins become ranks, and the sums of the left side go to `left_sums`.
void score_block(const GainParams& p, const std::size_t n[2], const std::int64_t* totals,
                 const std::int64_t* missing, SplitScratch& scratch, FeatureSplit* best,
                 std::int64_t* left_sums) {
  for (int side = 0; side < (missing == nullptr ? 1 : 2); ++side) {
    FeatureSplit side_best = best[side];
    if (n[side] > 0)
      run_pass(p, {n[side], totals, side == 0 ? nullptr : missing}, side == 1, scratch, &side_best);
    if (!(side_best.score > best[side].score)) continue;
    side_best.bin = scratch.bins[side_best.bin];
    best[side] = side_best;
    for (int c = 0; c < p.channels; ++c) left_sums[side * p.channels + c] = scratch.left[c];
  }
}

FeatureSplit find_split_sorted(const GainParams& p, const SortedRows& rows,
                               const std::int64_t* totals, double floor, SplitScratch& scratch) {
  if (rows.by_set) return find_set_sorted(p, rows, totals, floor, scratch);
  const auto channels = static_cast<std::size_t>(p.channels);
  const auto outputs = static_cast<std::size_t>(p.outputs);
  std::int64_t* missing = scratch.missing.data();
  std::int64_t* running = scratch.sides.data() + 2 * channels;
  for (std::size_t c = 0; c < channels; ++c) missing[c] = running[c] = 0;
  std::size_t n_present = rows.n;
  while (n_present > 0 && rank_of(rows.elements[n_present - 1]) == rows.n_values) {
    const RowId row = row_of(rows.elements[--n_present]);
    for (std::size_t k = 0; k < outputs; ++k) missing[k] += rows.sums.wide[row * outputs + k];
    if (rows.sums.counted) ++missing[outputs];
  }
  if (n_present == 0) return {};
  if (!any_nonzero(missing, p.channels)) missing = nullptr;

  FeatureSplit best[2];
  best[0].score = best[1].score = floor;
  Thinning thinning;
  std::size_t waiting = 0;  // entries of the block before that are still to be decided
  for (std::size_t begin = 0, end; begin < n_present; begin = end) {
    end = n_present - begin <= sorted_block ? n_present : begin + sorted_block;
    const bool is_last = end == n_present;
    std::size_t m =
        channels == 1 ? gather_block<true>(rows, begin, end, n_present, waiting, running, scratch)
                      : gather_block<false>(rows, begin, end, n_present, waiting, running, scratch);
    std::size_t kept = m;
    if (p.apart >= 0 && m > 0)
      kept = channels == 1 ? thin<true>(p, m, is_last, thinning, scratch)
                           : thin<false>(p, m, is_last, thinning, scratch);
    const bool waits = p.apart >= 0 && m > 0 && !thinning.seen_kept;
    if (waits) {  // scoring writes behind the entries that it reads
      copy_entry(kept, scratch.stride - 1, channels, scratch);
    }
    // The last entry splits nothing off but the missing rows, where they are on the right.
    const std::size_t n_left = is_last ? kept - 1 : kept;
    const std::size_t n[2] = {missing == nullptr ? n_left : kept, n_left};
    score_block(p, n, totals, missing, scratch, best, scratch.sides.data());
    waiting = waits ? 1 : 0;
    if (waits) copy_entry(scratch.stride - 1, 0, channels, scratch);
  }
  const int side = best[1].score > best[0].score ? 1 : 0;
  for (std::size_t c = 0; c < channels; ++c)
    scratch.left[c] = scratch.sides[static_cast<std::size_t>(side) * channels + c];
  best[side].is_valid = best[side].score > floor;
  best[side].missing_seen = missing != nullptr;
  return best[side];
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
