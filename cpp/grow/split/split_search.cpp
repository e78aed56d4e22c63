// The search over features; kernels (grow/search) search one feature.
#include "grow/split/split_search.h"

#include <algorithm>
#include <cmath>

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
      : sorted_ != nullptr || node.histogram == nullptr
          ? node.n_rows()
          : histograms_.slots().n_slots / codes_.n_features;
  const std::size_t grain =
      std::max<std::size_t>(1, slots_per_search / std::max<std::size_t>(1, cost));
  member_scratch.best_of_chunks.resize((features.size() + grain - 1) / grain);
  const auto search_all = [&](bool in_doubt) {
    if (params_.criterion == Criterion::gain_ratio) {
      FeatureBest& search_best = member_scratch.best_of_chunks.front();
      search_best.feature = -1;
      search_best.split.score = floor;
      search_ratio(
          node, features, in_doubt, score, member_scratch,
          [&](SearchChunk search_chunk) {
            team.for_chunks(member, features.size(), grain,
                            [&](std::size_t first, std::size_t last, int who) {
                              search_chunk(first, last, *scratch_[static_cast<std::size_t>(who)]);
                            });
          },
          search_best);
      return member_scratch.best_of_chunks.begin();
    }
    team.for_chunks(member, features.size(), grain,
                    [&](std::size_t first, std::size_t last, int who) {
                      FeatureBest& search_best = member_scratch.best_of_chunks[first / grain];
                      search_best.feature = -1;
                      search_best.split.score = floor;
                      search(node, features.subspan(first, last - first), in_doubt, member_scratch,
                             *scratch_[static_cast<std::size_t>(who)], search_best);
                    });
    return std::max_element(member_scratch.best_of_chunks.begin(),
                            member_scratch.best_of_chunks.end(), [](auto& a, auto& b) {
                              return a.split.score < b.split.score;  // of equals the first
                            });
  };
  auto best = search_all(false);
  if (best->feature >= 0 && !has_enough_rows(node, static_cast<std::uint32_t>(best->feature),
                                             best->split, best->left_sums.data(), member_scratch))
    best = search_all(true);
  if (best->feature < 0 && params_.allow_zero_gain) {
    best = member_scratch.best_of_chunks.begin();
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
  const auto feature = static_cast<std::size_t>(node.feature);
  const std::uint32_t bin = node.split.bin, n_bins = codes_.n_bins[feature];
  if (sorted_ != nullptr) {
    const std::uint64_t* rows = sorted_->elements(feature, node);
    const std::uint64_t* after =
        std::upper_bound(rows, rows + node.n_rows(), std::uint64_t{bin} << 32 | 0xffffffff);
    return static_cast<std::uint32_t>(*after >> 32);
  }
  if (node.split.next != 0) return node.split.next;  // the search has seen it
  const std::int64_t* sums =
      member_scratch.sums != nullptr
          ? member_scratch.sums->of(feature, node.sums.data(), member_scratch.buffer)
          : own_slots(node, feature);
  const std::size_t channels = node.histogram != nullptr ? histograms_.channels() : channels_;
  const auto is_empty = [&](std::uint32_t code) {
    for (std::size_t c = 0; c < channels; ++c)
      if (sums[code * channels + c] != 0) return false;
    return true;
  };
  std::uint32_t next = bin + 1;
  while (next < n_bins && is_empty(next)) ++next;
  if (next == bin + 1 || !sizes_.in_doubt() || !sizes_.any_empty()) return next;
  const auto counts =
      sizes_.count(feature, rows_.elements(node), node.n_rows(), member_scratch.counts);
  for (next = bin + 1; next < n_bins && counts[next] == 0;) ++next;
  return next;
}

// Opens the input of the search: the rows of a small node, else the histogram, converted for
// features of shared columns.
void SplitSearch::open_sums(const GrowNode& node, Scratch& member_scratch) {
  if (sorted_ != nullptr) return;
  if (node.histogram != nullptr) {
    if (member_scratch.sums != nullptr)
      member_scratch.sums->open(node.histogram, histograms_.slots(), histograms_.channels());
    return;
  }
  member_scratch.values.resize(node.n_rows() * channels_);
  rows_.read_values(rows_.elements(node), node.n_rows(), member_scratch.values.data());
  if (member_scratch.sums != nullptr)
    member_scratch.sums->open(rows_.elements(node), node.n_rows(), member_scratch.values.data(),
                              rows_.sums());
}

const std::int64_t* SplitSearch::own_slots(const GrowNode& node, std::size_t feature) const {
  return node.histogram +
         histograms_.slots().first[codes_.where[feature].store] * histograms_.channels();
}

void SplitSearch::make_room(const GrowNode& node, Scratch& scratch) const {
  if (node.histogram == nullptr && codes_.width == 2) scratch.split.keys.resize(node.n_rows());
}

GainParams SplitSearch::gain_params(const GrowNode& node) const {
  GainParams p = policy_.gain_of(node);
  p.apart = apart(node);
  if (node.histogram != nullptr && sizes_.in_doubt()) {
    p.channels = p.outputs;
    p.min_h = std::max(p.min_h, sizes_.least_h());
  }
  return p;
}

FeatureSplit SplitSearch::find_one(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                                   bool in_doubt, const Scratch& member_scratch, double floor,
                                   Scratch& scratch) const {
  return in_doubt ? find_counted(p, node, feature, member_scratch, floor, scratch)
                  : find_split(p, node, feature, member_scratch, floor, scratch);
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
  make_room(node, scratch);
  GainParams p = gain_params(node);
  for (const std::uint32_t f : features) {
    if (member_scratch.sums != nullptr && !member_scratch.sums->varies(f)) continue;
    if (member_scratch.sums != nullptr && is_scored_with_others(f) && !in_doubt) {
      const std::size_t n = member_scratch.sums->add_candidates(
          f, node.sums.data(), scratch.candidates.size(), scratch.split, scratch.buffer);
      scratch.candidates.resize(n, f);
      if (n + most_scored_together > most_candidates) score_candidates(p, node, scratch, best);
      continue;
    }
    score_candidates(p, node, scratch, best);
    if (p.bounded) p.direction = params_.monotone[f];
    const FeatureSplit split =
        find_one(p, node, f, in_doubt, member_scratch, best.split.score, scratch);
    if (split.is_valid) take(f, split, scratch, best);
  }
  score_candidates(p, node, scratch, best);
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

FeatureSplit SplitSearch::find_split(const GainParams& p, const GrowNode& node,
                                     std::uint32_t feature, const Scratch& member_scratch,
                                     double floor, Scratch& scratch) const {
  const GrowKernels& k = grow_kernels();
  const std::int64_t* totals = node.sums.data();
  SplitScratch& split = scratch.split;
  const bool by_set = codes_.has_levels(feature);
  split.levels.groups = groups_of(p.grouped, feature);
  if (params_.random_cuts) return find_cut(p, node, feature, member_scratch, floor, scratch);
  if (absolute_) return find_absolute(node, feature, member_scratch, floor, scratch);
  if (sorted_ != nullptr) {
    const SortedRows rows{sorted_->elements(feature, node), node.n_rows(), codes_.n_bins[feature],
                          rows_.sums()};
    return (by_set ? k.find_set_sorted : k.find_split_sorted)(p, rows, totals, floor, split);
  }
  const Storage kind = codes_.where[feature].kind;
  const bool is_small = node.histogram == nullptr;
  if (is_small && kind == Storage::single)
    return k.find_split_small(p,
                              few_rows(rows_.elements(node), node.n_rows(), totals, member_scratch),
                              feature, floor, split);
  if (is_small && kind == Storage::sparse)
    return k.find_split_listed(p, member_scratch.sums->list(feature, totals, split),
                               codes_.n_bins[feature], totals, floor, split);
  const std::int64_t* sums = kind == Storage::single
                                 ? own_slots(node, feature)
                                 : member_scratch.sums->of(feature, totals, scratch.buffer);
  return (by_set ? k.find_set : k.find_split)(
      p, sums, codes_.n_bins[feature], codes_.has_missing[feature] != 0, totals, floor, split);
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
  std::int64_t h = 0;
  for (std::size_t k = 0; k < width_; ++k) h += sum_h(node.sums[k]);
  return static_cast<std::int64_t>(std::floor(params_.sketch_eps * static_cast<double>(h)));
}

}  // namespace arboost
