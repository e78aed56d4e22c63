// The search over features; kernels (grow/search) search one feature.
#include "grow/split/split_search.h"

#include <algorithm>
#include <cmath>

#include "grow/search/node_score.h"
#include "grow/split/sources.h"

namespace arboost {
namespace {

// Histogram slots, or sorted rows, for which a second thread pays.
constexpr std::size_t slots_per_search = 65536;

// Most bins of a feature whose splits are scored together with those of others.
constexpr std::uint32_t most_scored_together = 16;

}  // namespace

SplitSearch::SplitSearch(const Codes& codes, TreePolicy& policy, const Sources& sources)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      rows_(sources.rows),
      histograms_(sources.histograms),
      sizes_(sources.sizes),
      sorted_(sources.sorted),
      absolute_(sources.absolute),
      width_(policy.width()),
      channels_(policy.channels()) {
  set_tables();
  if (params_.random_cuts) set_cut_values();
}

void SplitSearch::start_tree(int n_members) {
  channels_ = policy_.channels();
  while (scratch_.size() < static_cast<std::size_t>(n_members)) {
    const std::size_t n_codes = sorted_ != nullptr ? sorted_block + 16 : histograms_.max_bins();
    const std::size_t most_channels = width_ + (params_.may_count() ? 1 : 0);
    auto scratch = std::make_unique<Scratch>(std::max(n_codes, most_candidates), most_channels);
    if (!codes_.is_plain()) scratch->sums = std::make_unique<FeatureSums>(codes_, most_channels);
    scratch_.push_back(std::move(scratch));
  }
  for (auto& scratch : scratch_) scratch->candidates.clear();  // not empty after a failed tree
}

void SplitSearch::find(GrowNode& node, int member, Team& team,
                       const std::vector<std::uint8_t>* is_own) {
  Scratch& member_scratch = *scratch_[static_cast<std::size_t>(member)];
  open_sums(node, member_scratch);
  const double score =
      absolute_ ? -member_scratch.errors.open(rows_.elements(node), node.n_rows(), *absolute_)
                : policy_.node_score(node);
  const double floor = policy_.floor_of(node.sums.data(), score);
  const auto drawn = policy_.columns().of_node(node, member_scratch.columns);
  auto features = drawn;
  if (is_own != nullptr) {
    member_scratch.own_features.clear();
    for (const std::uint32_t f : drawn)
      if ((*is_own)[f] != 0) member_scratch.own_features.push_back(f);
    features = member_scratch.own_features;
  }
  if (features.empty()) return;
  const std::size_t cost =  // of one feature
      absolute_ ? 16 * node.n_rows()
                : with_source(node, member_scratch, [](const auto& from) { return from.cost(); });
  const std::size_t grain =
      std::max<std::size_t>(1, slots_per_search / std::max<std::size_t>(1, cost));
  std::vector<FeatureBest>& best_of_chunks = member_scratch.best_of_chunks;
  best_of_chunks.resize((features.size() + grain - 1) / grain);
  const auto each_chunk = [&](SearchChunk search_chunk) {
    team.for_chunks(member, features.size(), grain,
                    [&](std::size_t first, std::size_t last, int who) {
                      search_chunk(first, last, *scratch_[static_cast<std::size_t>(who)]);
                    });
  };
  const auto search_all = [&](bool in_doubt) {
    for (FeatureBest& best : best_of_chunks) {
      best.feature = -1;
      best.split.score = floor;
    }
    if (params_.criterion == Criterion::gain_ratio)
      search_ratio(node, features, in_doubt, score, member_scratch, each_chunk,
                   best_of_chunks.front());
    else
      each_chunk([&](std::size_t first, std::size_t last, Scratch& scratch) {
        search(node, features.subspan(first, last - first), in_doubt, member_scratch, scratch,
               best_of_chunks[first / grain]);
      });
    return std::max_element(best_of_chunks.begin(), best_of_chunks.end(), [](auto& a, auto& b) {
      return a.split.score < b.split.score;  // of equals the first
    });
  };
  auto best = search_all(false);
  if (best->feature >= 0 && !has_enough_rows(node, static_cast<std::uint32_t>(best->feature),
                                             best->split, best->left_sums.data(), member_scratch))
    best = search_all(true);
  if (best->feature < 0 && params_.allow_zero_gain) {
    best = best_of_chunks.begin();
    search_further(node, features, member_scratch, *best);
  }
  if (best->feature < 0) return;
  node.gain = std::max(best->split.score - score, 0.0);
  node.feature = best->feature;
  if (is_own != nullptr)
    node.position = static_cast<std::uint32_t>(
        std::find(drawn.begin(), drawn.end(), static_cast<std::uint32_t>(node.feature)) -
        drawn.begin());
  node.split = best->split;
  node.left_sums = best->left_sums;
  const bool has_next = !node.split.by_set && !params_.random_cuts;
  policy_.settle(node.feature, node.split, has_next ? next_code(node, member_scratch) : 0,
                 node.left_sums.data(), node.sums.data());
}

// The lowest code above the split's bin among the node's rows; the missing code if there is none.
std::uint32_t SplitSearch::next_code(const GrowNode& node, Scratch& member_scratch) const {
  return with_source(node, member_scratch,
                     [&](const auto& source) { return source.next_code(member_scratch); });
}

std::uint32_t SplitSearch::Source::next_code_in(const std::int64_t* sums, std::size_t channels,
                                                Scratch& scratch) const {
  const auto feature = static_cast<std::size_t>(node.feature);
  const std::uint32_t bin = node.split.bin, n_bins = in.codes_.n_bins[feature];
  const auto is_empty = [&](std::uint32_t code) {
    for (std::size_t c = 0; c < channels; ++c)
      if (sums[code * channels + c] != 0) return false;
    return true;
  };
  std::uint32_t next = bin + 1;
  while (next < n_bins && is_empty(next)) ++next;
  if (next == bin + 1 || !in.sizes_.in_doubt() || !in.sizes_.any_empty()) return next;
  const auto counts =
      in.sizes_.count(feature, in.rows_.elements(node), node.n_rows(), scratch.counts);
  for (next = bin + 1; next < n_bins && counts[next] == 0;) ++next;
  return next;
}

void SplitSearch::open_sums(const GrowNode& node, Scratch& member_scratch) {
  with_source(node, member_scratch, [&](const auto& source) { source.open(member_scratch); });
}

template <class Of>
GainParams SplitSearch::gain_params(const Of& source) const {
  GainParams p = policy_.gain_of(source.node);
  p.apart = apart(source.node);
  if (Of::counts_rows_late && sizes_.in_doubt()) {
    p.channels = p.outputs;
    p.min_h = std::max(p.min_h, sizes_.least_h());
  }
  return p;
}

void SplitSearch::take(std::uint32_t feature, const FeatureSplit& split, const Scratch& scratch,
                       FeatureBest& best) const {
  best.split = split;
  best.feature = static_cast<std::int32_t>(feature);
  const auto left = scratch.split.left.begin();
  best.left_sums.assign(left, left + static_cast<std::ptrdiff_t>(channels_));
}

void SplitSearch::search(const GrowNode& node, std::span<const std::uint32_t> features,
                         bool in_doubt, const Scratch& member_scratch, Scratch& scratch,
                         FeatureBest& best) const {
  with_source(node, member_scratch,
              [&](const auto& source) { search_in(source, features, in_doubt, scratch, best); });
}

template <class Of>
void SplitSearch::search_in(const Of& source, std::span<const std::uint32_t> features,
                            bool in_doubt, Scratch& scratch, FeatureBest& best) const {
  source.make_room(scratch);
  GainParams p = gain_params(source);
  const FeatureSums* sums = source.opened.sums.get();
  for (const std::uint32_t f : features) {
    if (sums != nullptr && !sums->varies(f)) continue;
    if (sums != nullptr && is_scored_with_others(f) && !in_doubt) {
      const std::size_t n = sums->add_candidates(
          f, source.node.sums.data(), scratch.candidates.size(), scratch.split, scratch.buffer);
      scratch.candidates.resize(n, f);
      if (n + most_scored_together > most_candidates)
        score_candidates(p, source.node, scratch, best);
      continue;
    }
    score_candidates(p, source.node, scratch, best);
    if (p.bounded) p.direction = params_.monotone[f];
    const FeatureSplit split = find_split(source, p, f, in_doubt, best.split.score, scratch);
    if (split.is_valid) take(f, split, scratch, best);
  }
  score_candidates(p, source.node, scratch, best);
}

// `in_doubt`: a split that has too few rows on a side is replaced by one that has enough.
template <class Of>
FeatureSplit SplitSearch::find_split(const Of& source, const GainParams& p, std::uint32_t feature,
                                     bool in_doubt, double floor, Scratch& scratch) const {
  scratch.split.levels.groups = groups_of(p.grouped, feature);
  const FeatureSplit split =
      params_.random_cuts ? find_cut(p, source.node, feature, source.opened, floor, scratch)
      : absolute_         ? find_absolute(source.node, feature, source.opened, floor, scratch)
                          : source.find(p, feature, floor, scratch);
  if constexpr (Of::counts_rows_late)
    if (in_doubt && split.is_valid &&
        !has_enough_rows(source.node, feature, split, scratch.split.left.data(), scratch))
      return find_counted(source, p, feature, floor, scratch);
  return split;
}

void SplitSearch::search_ratio(const GrowNode& node, std::span<const std::uint32_t> features,
                               bool in_doubt, double score, Scratch& member_scratch,
                               FunctionRef<void(SearchChunk)> each_chunk, FeatureBest& best) const {
  with_source(node, member_scratch, [&](const auto& source) {
    const GainParams p = gain_params(source);
    const double floor = best.split.score;
    const auto find = [&](std::uint32_t feature, Scratch& scratch) {
      return find_split(source, p, feature, in_doubt, floor, scratch);
    };
    std::vector<FeatureRatio>& ratios = member_scratch.ratios;
    ratios.resize(features.size());
    each_chunk([&](std::size_t first, std::size_t last, Scratch& scratch) {
      source.make_room(scratch);
      for (std::size_t j = first; j < last; ++j) {
        const bool varies =
            source.opened.sums == nullptr || source.opened.sums->varies(features[j]);
        const FeatureSplit split = varies ? find(features[j], scratch) : FeatureSplit();
        ratios[j] = split.is_valid ? ratio_of(node, split, score, scratch) : FeatureRatio{-1, 0};
      }
    });
    const std::size_t chosen = best_ratio(ratios);
    if (chosen == features.size()) return;
    source.make_room(member_scratch);
    const FeatureSplit split = find(features[chosen], member_scratch);
    take(features[chosen], split, member_scratch, best);
  });
}

// True for features of few values, of which there may be thousands.
bool SplitSearch::is_scored_with_others(std::uint32_t feature) const {
  return !params_.random_cuts && !absolute_ && codes_.where[feature].kind != Storage::single &&
         codes_.has_missing[feature] == 0 && codes_.n_bins[feature] <= most_scored_together &&
         !codes_.has_levels(feature) && !policy_.gain().bounded;
}

// In the order of the features, so that the first of equal splits wins, as elsewhere.
void SplitSearch::score_candidates(const GainParams& p, const GrowNode& node, Scratch& scratch,
                                   FeatureBest& best) const {
  const std::size_t n = scratch.candidates.size();
  if (n == 0) return;
  SplitScratch& split = scratch.split;
  const std::size_t best_cut =
      grow_kernels().find_candidate(p, n, node.sums.data(), best.split.score, split);
  if (best_cut < n) {
    const std::uint32_t feature = scratch.candidates[best_cut];
    std::size_t first = best_cut;
    while (first > 0 && scratch.candidates[first - 1] == feature) --first;
    best.split = {};
    best.split.score = split.scores[best_cut];
    best.split.is_valid = true;
    best.split.bin = static_cast<std::uint32_t>(best_cut - first);
    best.feature = static_cast<std::int32_t>(feature);
    best.left_sums.resize(channels_);
    for (std::size_t c = 0; c < static_cast<std::size_t>(p.channels); ++c)
      best.left_sums[c] = split.prefix[c * split.stride + best_cut];
  }
  scratch.candidates.clear();
}

void SplitSearch::set_tables() {
  constexpr std::size_t n_codes = 256;
  std::size_t n_shared = 0;
  for (const FeatureStorage& storage : codes_.where)
    n_shared += storage.kind == Storage::shared ? 1 : 0;
  if (n_shared == 0) return;
  decoded_.reserve(n_shared * n_codes);
  for (std::size_t f = 0; f < codes_.n_features; ++f) {
    const bool is_shared = codes_.where[f].kind == Storage::shared;
    tables_.push_back(is_shared ? decoded_.data() + decoded_.size() : nullptr);
    for (std::uint32_t code = 0; is_shared && code < n_codes; ++code)
      decoded_.push_back(static_cast<std::uint8_t>(codes_.decode(f, code)));
  }
}

FewRows SplitSearch::few_rows(const Element* elements, std::size_t n, const std::int64_t* totals,
                              const Scratch& member_scratch) const {
  return {&codes_, tables(), elements, member_scratch.values.data(), channels_, n, totals, {}};
}

// Hessian between the split candidates of a node; -1: all values are candidates.
std::int64_t SplitSearch::apart(const GrowNode& node) const {
  if (params_.candidates != Candidates::per_node) return -1;
  const auto h = static_cast<double>(sum_of_h(node.sums.data(), width_));
  return static_cast<std::int64_t>(std::floor(params_.sketch_eps * h));
}

}  // namespace arboost
