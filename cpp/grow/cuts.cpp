// One random cut of a feature instead of its best split, as extremely randomised trees have it
// (Geurts, Ernst and Wehenkel 2006): uniform in value between the lowest and the highest value of
// the node's rows. About 2 ns a row, or 1 ns a bin.
//
// Codes know nothing of values inside their bins: a bin stands for the middle between its edges,
// and the first and the last one are as wide as their neighbours. A category is cut by a random set
// of those levels that occur; missing rows are one of them. Missing rows of a number are tried on
// both sides of the cut.
#include <algorithm>
#include <limits>

#include "grow/grower.h"
#include "grow/visit.h"
#include "random.h"

namespace arboost {
namespace {

double finite(double x) {
  constexpr double largest = std::numeric_limits<double>::max();
  return std::clamp(x, -largest, largest);
}

// The value that a bin of a feature with these edges, two at the least, stands for.
double value_of(const std::vector<double>& edges, std::uint32_t bin) {
  const std::size_t last = edges.size();
  if (bin == 0) return finite(edges[0] - (edges[1] / 2 - edges[0] / 2));
  if (bin == last) return finite(edges[last - 1] + (edges[last - 1] / 2 - edges[last - 2] / 2));
  return edges[bin - 1] / 2 + edges[bin] / 2;
}

// The last bin on the left of a cut between the values of bins low and high.
std::uint32_t draw_cut(const std::vector<double>& edges, std::uint32_t low, std::uint32_t high,
                       std::uint64_t bits) {
  if (high - low == 1) return low;
  const double share = (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
  const double at = (1 - share) * value_of(edges, low) + share * value_of(edges, high);
  const auto edge = std::lower_bound(edges.begin() + low, edges.begin() + high, at);
  const auto bin = static_cast<std::uint32_t>(edge - edges.begin());  // that the cut is in
  const std::uint32_t last = bin > low && at < value_of(edges, bin) ? bin - 1 : bin;
  return std::min(last, high - 1);
}

// Some of the codes, but neither none nor all of them: each with a bit of its own.
CodeSet draw_levels(const CodeSet& seen, std::uint64_t key) {
  for (std::uint64_t turn = 0;; ++turn) {
    CodeSet set;
    bool any = false, all = true;
    for (std::size_t w = 0; w < 4; ++w) {
      set.words[w] = seen.words[w] & mix_bits(mix_bits(key + 4 * turn + w));
      any |= set.words[w] != 0;
      all &= set.words[w] == seen.words[w];
    }
    if (any && !all) return set;
  }
}

}  // namespace

bool Grower::varies(const GrowNode& node, std::uint32_t feature, Scratch& own) const {
  std::uint32_t first = no_code;
  bool found = false;
  each_sum(node, feature, own, own, [&](std::uint32_t code, const std::int64_t*) {
    if (first == no_code) first = code;
    found = code != first;
    return !found;
  });
  return found;
}

FeatureSplit Grower::find_cut(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                              const Scratch& own, double floor, Scratch& scratch) const {
  const std::uint64_t key = mix_bits(mix_bits(cut_key_ + node.path) + feature);
  SplitScratch& split = scratch.split;
  FeatureSplit best;
  best.by_set = codes_.has_levels(feature);
  const std::uint32_t n_bins = codes_.n_bins[feature];
  CodeSet seen;
  std::uint32_t low = n_bins, high = 0;
  each_sum(node, feature, own, scratch, [&](std::uint32_t code, const std::int64_t*) {
    if (best.by_set) put(seen, code, true);
    best.missing_seen |= code == n_bins;
    if (code == n_bins) return true;
    low = std::min(low, code);
    high = std::max(high, code);
    return true;
  });
  if (low == n_bins || (low == high && !best.missing_seen)) return best;
  if (best.by_set)
    best.left = draw_levels(seen, key);
  else if (low < high)
    best.bin = draw_cut(codes_.edges[feature], low, high, mix_bits(key));
  else
    best.bin = n_bins - 1;  // all values on the left, missing rows on the right

  // Candidate 0 has the missing rows of a number on the right, candidate 1 on the left.
  const std::size_t stride = split.stride;
  for (std::size_t c = 0; c < channels_; ++c)
    split.prefix[c * stride] = split.prefix[c * stride + 1] = 0;
  each_sum(node, feature, own, scratch, [&](std::uint32_t code, const std::int64_t* sums) {
    const bool is_missing = !best.by_set && code == n_bins;
    const bool is_left = best.by_set ? holds(best.left, code) : code <= best.bin;
    for (std::size_t c = 0; c < channels_; ++c) {
      if (is_left && !is_missing) split.prefix[c * stride] += sums[c];
      if (is_left || is_missing) split.prefix[c * stride + 1] += sums[c];
    }
    return true;
  });
  const bool two_ways = best.missing_seen && !best.by_set && low < high;
  const std::size_t n = two_ways ? 2 : 1;
  const std::size_t found = absolute_
                                ? score_cut(node, feature, best, n, own, floor, scratch)
                                : kernels().find_candidate(p, n, node.sums.data(), floor, split);
  best.found = found < n;
  best.score = best.found ? split.scores[found] : floor;
  if (!best.found) return best;
  for (std::size_t c = 0; c < channels_; ++c) split.left[c] = split.prefix[c * stride + found];
  if (!best.by_set) {
    best.missing_left = found == 1;
    return best;
  }
  // Levels that the node has not seen go where missing rows go, as in grow/levels.h.
  std::int64_t left_h = 0, h = 0;
  for (std::size_t k = 0; k < width_; ++k) {
    left_h += sum_h(split.left[k]);
    h += sum_h(node.sums[k]);
  }
  best.missing_left = best.missing_seen ? holds(best.left, n_bins) : 2 * left_h >= h;
  if (best.missing_left)
    for (std::size_t w = 0; w < 4; ++w) best.left.words[w] |= ~seen.words[w];
  return best;
}

// All drawn features may be constant in the node. Then further ones are drawn, up to the first that
// is not, as scikit-learn does: its split, whatever it is worth, is the node's.
void Grower::search_further(const GrowNode& node, std::span<const std::uint32_t> drawn,
                            Scratch& own, Found& found) {
  for (const std::uint32_t f : drawn)
    if (varies(node, f, own)) return;
  for (const std::uint32_t f : columns_.rest_of_node(node)) {
    if (!varies(node, f, own)) continue;
    return search(node, {&f, 1}, own, own, found);
  }
}

}  // namespace arboost
