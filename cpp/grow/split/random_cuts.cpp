// Extremely randomised trees (Geurts, Ernst and Wehenkel 2006): rows of a node -> one random
// threshold a feature, uniform between the lowest and the highest value of the node's rows. About 2
// ns a row, or 1 ns a bin. Features are searched in parallel.
//
// Codes do not resolve values inside a bin: the midpoint between its edges represents a bin, and
// the first and the last bin are taken as wide as their neighbours. A categorical feature is split
// by a random set of the levels that occur, missing included. Missing values of a numerical feature
// are tried on both sides.
#include <algorithm>
#include <bit>  // bit_ceil
#include <limits>

#include "base/random.h"
#include "grow/split/sources.h"

namespace arboost {
namespace {

constexpr std::size_t rows_by_row = 512;

double finite(double x) {
  constexpr double largest = std::numeric_limits<double>::max();
  return std::clamp(x, -largest, largest);
}

// The value that represents a bin of a feature with these edges, at least one.
double value_of(const std::vector<double>& edges, std::uint32_t bin) {
  const std::size_t last = edges.size();
  if (bin > last) return std::numeric_limits<double>::infinity();
  if (last == 1) return bin;  // there is one cut
  if (bin == 0) return finite(edges[0] - (edges[1] / 2 - edges[0] / 2));
  if (bin == last) return finite(edges[last - 1] + (edges[last - 1] / 2 - edges[last - 2] / 2));
  return edges[bin - 1] / 2 + edges[bin] / 2;
}

// Codes of rows, and the range of the codes that are not missing, over rows of nonzero weight.
template <class CodeOf, class Range>
void gather_codes(CodeOf code_of, const Element* elements, const std::int64_t* values,
                  std::size_t n, std::uint32_t n_bins, Element* codes, Range& range) {
  std::uint32_t low = n_bins, high = 0, missing = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = code_of(row_of(elements[i]));
    codes[i] = code;
    const bool counts = values[i] != 0;
    const bool is_value = counts & (code != n_bins);
    low = std::min(low, is_value ? code : n_bins);
    high = std::max(high, is_value ? code : 0u);
    missing |= (counts & (code == n_bins)) ? 1 : 0;
  }
  range.low = low;
  range.high = high;
  range.missing = missing != 0;
}

// The groups up to a random one between those that occur, in the order of their means; missing
// values on a random side.
CodeSet draw_groups(const LevelGroups& groups, const CodeSet& seen, std::uint32_t missing,
                    std::uint64_t key) {
  const auto is_seen = [&](std::uint8_t code) { return holds(seen, code); };
  const auto first = std::find_if(groups.order.begin(), groups.order.end(), is_seen);
  const auto last = std::find_if(groups.order.rbegin(), groups.order.rend(), is_seen);
  const auto low = static_cast<std::size_t>(first - groups.order.begin());
  const auto high = static_cast<std::size_t>(groups.order.rend() - last) - 1;
  if (low == high) return first_groups(groups, groups.order.size());  // missing rows on the right
  const double at = draw_between(key, static_cast<double>(low), static_cast<double>(high));
  CodeSet set = first_groups(groups, std::min(static_cast<std::size_t>(at), high - 1) + 1);
  put(set, missing, holds(seen, missing) && (mix_bits(key + 1) & 1) != 0);
  return set;
}

}  // namespace

// Values that represent the bins, for the kernels.
void SplitSearch::set_cut_values() {
  if (codes_.width > 1) return;
  const auto is_cut = [this](std::size_t f) {
    return codes_.n_bins[f] > 1 && !codes_.has_levels(f);
  };
  std::size_t n_cut = 0;
  for (std::size_t f = 0; f < codes_.n_features; ++f) n_cut += is_cut(f) ? 1 : 0;
  bin_values_.reserve(n_cut * CutDraws::length);
  for (std::size_t f = 0; f < codes_.n_features; ++f) {
    cut_values_.push_back(bin_values_.data() + bin_values_.size());
    if (!is_cut(f)) continue;
    for (std::uint32_t bin = 0; bin < CutDraws::n_values; ++bin)
      bin_values_.push_back(value_of(codes_.edges[f], bin));
    for (std::uint32_t bin = 16; bin <= 256; bin += 16)
      bin_values_.push_back(value_of(codes_.edges[f], bin));
  }
}

// Small nodes with one channel have loops of their own, over columns of numbers.
bool SplitSearch::cuts_rows(const GrowNode& node, std::uint32_t feature) const {
  return sorted_ == nullptr && node.histogram == nullptr && channels_ == 1 &&
         codes_.where[feature].kind == Storage::single && !codes_.has_levels(feature);
}

bool SplitSearch::varies(const GrowNode& node, std::uint32_t feature,
                         Scratch& member_scratch) const {
  std::uint32_t first = no_code;
  bool differs = false;
  each_sum(node, feature, member_scratch, member_scratch,
           [&](std::uint32_t code, const std::int64_t*) {
             if (first == no_code) first = code;
             differs = code != first;
             return !differs;
           });
  return differs;
}

// Range of the codes over the node's rows of nonzero weight, and whether any value is missing; for
// a categorical feature, the levels that occur.
SplitSearch::CutRange SplitSearch::cut_range(const GrowNode& node, std::uint32_t feature,
                                             const Scratch& member_scratch,
                                             Scratch& scratch) const {
  const std::uint32_t n_bins = codes_.n_bins[feature];
  const bool by_set = codes_.has_levels(feature);
  CutRange range{.low = n_bins, .high = 0, .missing = false, .seen = {}};
  if (cuts_rows(node, feature)) {
    scratch.ordered.resize(node.n_rows());
    const std::size_t store = codes_.where[feature].store;
    const auto gather = [&](auto code_of) {
      gather_codes(code_of, rows_.elements(node), member_scratch.values.data(), node.n_rows(),
                   n_bins, scratch.ordered.data(), range);
    };
    // Few rows are scattered in the table, but the features of a row are contiguous.
    const bool by_row = node.n_rows() <= rows_by_row;
    const auto gather_as = [&](auto zero) {
      using Code = decltype(zero);
      const Code* column = codes_.column<Code>(store);
      if (by_row)
        gather([&](RowId row) -> std::uint32_t { return codes_.row<Code>(row)[store]; });
      else
        gather([=](RowId row) -> std::uint32_t { return column[row]; });
    };
    codes_.width == 1 ? gather_as(std::uint8_t{}) : gather_as(std::uint16_t{});
    return range;
  }
  each_sum(node, feature, member_scratch, scratch, [&](std::uint32_t code, const std::int64_t*) {
    if (by_set) put(range.seen, code, true);
    range.missing |= code == n_bins;
    if (code == n_bins) return true;
    range.low = std::min(range.low, code);
    range.high = std::max(range.high, code);
    return true;
  });
  return range;
}

// Writes to scratch.split.prefix the left sums with missing values on the right and, for a
// numerical feature, on the left. After cut_range.
void SplitSearch::sum_cut(const GrowNode& node, std::uint32_t feature, const FeatureSplit& cut,
                          const Scratch& member_scratch, Scratch& scratch) const {
  SplitScratch& split = scratch.split;
  const std::size_t stride = split.stride;
  const std::uint32_t n_bins = codes_.n_bins[feature];
  if (cuts_rows(node, feature)) {
    const std::int64_t* values = member_scratch.values.data();
    const Element* codes = scratch.ordered.data();
    std::int64_t left = 0, missing = 0;
    const std::uint32_t bin = cut.bin;
    // By masks, as in grow/search/few_cuts.h; codes are unpredictable.
    for (std::size_t i = 0; i < node.n_rows(); ++i)
      left += values[i] & -std::int64_t{codes[i] <= bin};
    for (std::size_t i = 0; cut.missing_seen && i < node.n_rows(); ++i)
      missing += values[i] & -std::int64_t{codes[i] == n_bins};
    split.prefix[0] = left;
    split.prefix[1] = left + missing;
    return;
  }
  for (std::size_t c = 0; c < channels_; ++c)
    split.prefix[c * stride] = split.prefix[c * stride + 1] = 0;
  each_sum(node, feature, member_scratch, scratch,
           [&](std::uint32_t code, const std::int64_t* sums) {
             const bool is_missing = !cut.by_set && code == n_bins;
             const bool is_left = cut.by_set ? holds(cut.left, code) : code <= cut.bin;
             for (std::size_t c = 0; c < channels_; ++c) {
               if (is_left && !is_missing) split.prefix[c * stride] += sums[c];
               if (is_left || is_missing) split.prefix[c * stride + 1] += sums[c];
             }
             return true;
           });
}

FeatureSplit SplitSearch::find_cut(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                                   const Scratch& member_scratch, double floor,
                                   Scratch& scratch) const {
  const std::uint64_t key = cut_key(mix_bits(policy_.cut_key() + node.path), feature);
  const std::uint32_t n_bins = codes_.n_bins[feature];
  const CutRange range = cut_range(node, feature, member_scratch, scratch);
  FeatureSplit best;
  if (range.low == n_bins || (range.low == range.high && !range.missing)) return best;
  best.missing_seen = range.missing;
  best.by_set = codes_.has_levels(feature);
  const LevelGroups* groups = groups_of(p.grouped, feature);
  if (groups != nullptr)
    best.left = draw_groups(*groups, range.seen, n_bins, key);
  else if (best.by_set)
    best.left = draw_levels(range.seen, key);
  else if (range.low < range.high)
    best.bin = draw_cut(
        key, [&](std::uint32_t bin) { return value_of(codes_.edges[feature], bin); },
        std::bit_ceil(n_bins), range.low, range.high);
  else
    best.bin = n_bins - 1;  // all values on the left, missing rows on the right
  sum_cut(node, feature, best, member_scratch, scratch);

  SplitScratch& split = scratch.split;
  const bool two_ways = best.missing_seen && !best.by_set && range.low < range.high;
  const std::size_t n = two_ways ? 2 : 1;
  const std::size_t best_cut =
      absolute_ ? score_cut(node, feature, best, n, member_scratch, floor, scratch)
                : grow_kernels().find_candidate(p, n, node.sums.data(), floor, split);
  best.is_valid = best_cut < n;
  best.score = best.is_valid ? split.scores[best_cut] : floor;
  if (!best.is_valid) return best;
  for (std::size_t c = 0; c < channels_; ++c)
    split.left[c] = split.prefix[c * split.stride + best_cut];
  if (!best.by_set) {
    best.missing_left = best_cut == 1;
    return best;
  }
  // Levels unseen in the node go where missing values go, as in grow/search/category.h; groups are
  // in order.
  best.missing_left = best.missing_seen ? holds(best.left, n_bins)
                                        : policy_.is_heavier(split.left.data(), node.sums.data());
  const CodeSet known = groups != nullptr ? first_groups(*groups, n_bins) : range.seen;
  if (best.missing_left)
    for (std::size_t w = 0; w < 4; ++w) best.left.words[w] |= ~known.words[w];
  return best;
}

CutDraws SplitSearch::draws(std::uint64_t path) const {
  return {mix_bits(policy_.cut_key() + path), cut_values_.data()};
}

void SplitSearch::search_further(const GrowNode& node, std::span<const std::uint32_t> drawn,
                                 Scratch& member_scratch, FeatureBest& search_best) {
  for (const std::uint32_t f : drawn)
    if (varies(node, f, member_scratch)) return;
  for (const std::uint32_t f : policy_.columns().rest_of_node(node)) {
    if (!varies(node, f, member_scratch)) continue;
    return search(node, {&f, 1}, true, member_scratch, member_scratch, search_best);
  }
}

}  // namespace arboost
