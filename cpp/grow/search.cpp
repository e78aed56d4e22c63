// Rows of a node -> its best split, from one of three sources: a histogram, the codes of few rows,
// or rows sorted by each feature. Parallel over features for large nodes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "grow/grower.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

// A gain below this share of the node's own score is a rounding error.
constexpr double least_relative_gain = 1e-10;

// Histogram slots, or sorted rows, for which a second thread pays.
constexpr std::size_t slots_per_search = 65536;

// Most bins of a feature whose splits are scored together with those of others.
constexpr std::uint32_t most_scored_together = 16;

}  // namespace

GainParams Grower::gain_of(const GrowNode& node) const {
  GainParams p = gain_;
  p.lower = node.lower;
  p.upper = node.upper;
  return p;
}

// Finds the children's best splits. Only the smaller child's rows are read: the larger child's
// histogram is the parent's minus the smaller child's, computed in place.
void Grower::evaluate_children(GrowNode& node, int member, Team& team) {
  if (sorted_ != nullptr) return evaluate_sorted(node, member, team);
  const bool left_smaller = node.left->n_rows() <= node.right->n_rows();
  GrowNode& smaller = left_smaller ? *node.left : *node.right;
  GrowNode& larger = left_smaller ? *node.right : *node.left;
  const bool search_smaller = !grow_if_small(smaller, member) && may_split(smaller);
  const bool search_larger = !grow_if_small(larger, member) && may_split(larger);
  std::int64_t* parent = node.histogram;
  node.histogram = nullptr;
  if (search_larger && !is_small(larger)) {
    if (parent == nullptr) {
      larger.histogram = histograms_.build(codes_, rows_, larger, member, team);
    } else if (is_small(smaller) || smaller.subtree_of >= 0) {
      grow_kernels().accumulate(codes_, histograms_.slots(), histograms_.sums_of(rows_),
                                rows_.elements(smaller), smaller.n_rows(), true, parent);
      larger.histogram = parent;
    } else {
      smaller.histogram = histograms_.build(codes_, rows_, smaller, member, team);
      grow_kernels().subtract(parent, smaller.histogram, histograms_.size());
      larger.histogram = parent;
    }
  }
  if (search_smaller && !is_small(smaller) && smaller.histogram == nullptr)
    smaller.histogram = histograms_.build(codes_, rows_, smaller, member, team);
  if (search_smaller) evaluate(smaller, member, team);
  if (search_larger) evaluate(larger, member, team);
  if (larger.histogram != parent) histograms_.release(parent);
  for (GrowNode* child : {node.left, node.right})
    if (child->gain < 0 || histograms_.scarce()) forget_histogram(*child);
}

// Leaves need no sorted rows.
void Grower::evaluate_sorted(GrowNode& node, int member, Team& team) {
  const bool search_left = may_split(*node.left), search_right = may_split(*node.right);
  if (search_left || search_right) sorted_->split(node, rows_, member, team);
  if (search_left) evaluate(*node.left, member, team);
  if (search_right) evaluate(*node.right, member, team);
}

double Grower::node_score(const GrowNode& node) const {
  if (!gain_.bounded) return node_score(node.sums.data());
  const GainParams p = gain_of(node);
  const double g = sum_g(node.sums[0]), h = sum_h(node.sums[0]);
  return score_of_step(p, g, h, bounded_step(p, g, h));
}

double Grower::node_score(const std::int64_t* sums) const {
  if (gain_.criterion != Criterion::quadratic) {
    double score = 0;
    for (std::size_t k = 0; k < width_; ++k) {  // as in GrowKernels::find_split
      const double g = sum_g(sums[k]), weight = sum_h(sums[k]) * gain_.h_per_g;
      const auto part = [weight](double sum) {
        return sum > 0 ? sum * loss_kernels().logarithm(sum / weight) : 0.0;
      };
      score += gain_.two_classes ? part((weight - g) / 2) + part((weight + g) / 2) : part(-g);
    }
    return score;
  }
  const bool plain = is_plain(gain_);
  double score = 0;
  for (std::size_t k = 0; k < width_; ++k) {
    const double g = sum_g(sums[k]), h = sum_h(sums[k]);
    score += plain ? side_score<true>(gain_, g, h) : side_score<false>(gain_, g, h);
  }
  return score;
}

// Lower bound of a split's score. A bounded node's own score can be negative: its bounds may force
// a step that raises the objective.
double Grower::floor_of(const std::int64_t* sums, double score) const {
  double size = std::abs(score);
  if (gain_.criterion == Criterion::entropy || gain_.criterion == Criterion::poisson)
    for (std::size_t k = 0; k < width_; ++k)  // logarithms of means near 1 are near 0
      size +=
          gain_.two_classes ? sum_h(sums[k]) * gain_.h_per_g : -static_cast<double>(sum_g(sums[k]));
  if (!params_.allow_zero_gain) return score + std::max(min_gain_, least_relative_gain * size);
  const double rounding = least_relative_gain * (size + min_gain_);
  return score + min_gain_ - std::max(rounding, std::numeric_limits<double>::min());
}

// The node's best split over all features: the highest gain, then the first feature in turn.
void Grower::evaluate(GrowNode& node, int member, Team& team) {
  Scratch& own = *scratch_[static_cast<std::size_t>(member)];
  open_sums(node, own);
  const double score = absolute_ ? -own.errors.open(rows_.elements(node), node.n_rows(), *absolute_)
                                 : node_score(node);
  const double floor = floor_of(node.sums.data(), score);
  const auto features = columns_.of_node(node, own.columns);
  if (features.empty()) return;
  const std::size_t cost =  // of one feature
      absolute_ ? 16 * node.n_rows()
      : sorted_ != nullptr || node.histogram == nullptr
          ? node.n_rows()
          : histograms_.slots().n_slots / codes_.n_features;
  const std::size_t grain =
      std::max<std::size_t>(1, slots_per_search / std::max<std::size_t>(1, cost));
  own.found.resize((features.size() + grain - 1) / grain);
  const auto search_all = [&](bool in_doubt) {
    team.for_chunks(member, features.size(), grain,
                    [&](std::size_t first, std::size_t last, int who) {
                      Found& found = own.found[first / grain];
                      found.feature = -1;
                      found.split.score = floor;
                      search(node, features.subspan(first, last - first), in_doubt, own,
                             *scratch_[static_cast<std::size_t>(who)], found);
                    });
    return std::max_element(own.found.begin(), own.found.end(), [](auto& a, auto& b) {
      return a.split.score < b.split.score;  // of equals the first
    });
  };
  auto best = search_all(false);
  if (best->feature >= 0 && !has_enough_rows(node, static_cast<std::uint32_t>(best->feature),
                                             best->split, best->left_sums.data(), own))
    best = search_all(true);
  if (best->feature < 0 && params_.allow_zero_gain) {
    best = own.found.begin();
    search_further(node, features, own, *best);
  }
  if (best->feature < 0) return;
  node.gain = std::max(best->split.score - score, 0.0);
  node.feature = best->feature;
  node.split = best->split;
  node.left_sums = best->left_sums;
  if (node.split.by_set) return;  // a set covers all codes
  const auto feature = static_cast<std::size_t>(node.feature);
  if (!params_.random_cuts)
    node.split.bin = middle_bin(feature, node.split.bin, next_code(node, own));
  if (!node.split.missing_seen)
    node.split.missing_left = is_heavier(node.left_sums.data(), node.sums.data());
}

// Without missing values in the node, missing values go to the child of larger hessian.
bool Grower::is_heavier(const std::int64_t* left_sums, const std::int64_t* sums) const {
  std::int64_t left_h = 0, h = 0;
  for (std::size_t k = 0; k < width_; ++k) {
    left_h += sum_h(left_sums[k]);
    h += sum_h(sums[k]);
  }
  return 2 * left_h >= h;
}

// All bins from the last on the left to the first on the right, exclusive, give the same partition
// of the node's rows; the search returns the lowest. The edge nearest to the middle of the gap
// generalises best; with only missing values on the right, the last bin does.
std::uint32_t Grower::middle_bin(std::size_t feature, std::uint32_t bin, std::uint32_t next) const {
  const std::uint32_t n_bins = codes_.n_bins[feature];
  if (next >= n_bins) return n_bins - 1;
  const std::vector<double>& edges = codes_.edges[feature];
  std::uint32_t low = bin, high = next - 1;
  const double middle = edges[low] / 2 + edges[high] / 2;
  while (high - low > 1) {
    const std::uint32_t between = low + (high - low) / 2;
    const bool is_low = edges[between] <= middle;  // branch-free: unpredictable
    low = is_low ? between : low;
    high = is_low ? high : between;
  }
  return middle - edges[low] <= edges[high] - middle ? low : high;
}

// The lowest code above the split's bin among the node's rows; the missing code if there is none.
std::uint32_t Grower::next_code(const GrowNode& node, Scratch& own) const {
  const auto feature = static_cast<std::size_t>(node.feature);
  const std::uint32_t bin = node.split.bin, n_bins = codes_.n_bins[feature];
  if (sorted_ != nullptr) {
    const std::uint64_t* rows = sorted_->elements(feature, node);
    const std::uint64_t* after =
        std::upper_bound(rows, rows + node.n_rows(), std::uint64_t{bin} << 32 | 0xffffffff);
    return static_cast<std::uint32_t>(*after >> 32);
  }
  if (node.split.next != 0) return node.split.next;  // the search has seen it
  const std::int64_t* sums = own.sums != nullptr ? own.sums->of(feature, node.sums.data(), own.room)
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
  const auto counts = sizes_.count(feature, rows_.elements(node), node.n_rows(), own.counts);
  for (next = bin + 1; next < n_bins && counts[next] == 0;) ++next;
  return next;
}

// Opens the input of the search: the rows of a small node, else the histogram, converted for
// features of shared columns.
void Grower::open_sums(const GrowNode& node, Scratch& own) {
  if (sorted_ != nullptr) return;
  if (node.histogram != nullptr) {
    if (own.sums != nullptr)
      own.sums->open(node.histogram, histograms_.slots(), histograms_.channels());
    return;
  }
  own.values.resize(node.n_rows() * channels_);
  rows_.read_values(rows_.elements(node), node.n_rows(), own.values.data());
  if (own.sums != nullptr)
    own.sums->open(rows_.elements(node), node.n_rows(), own.values.data(), rows_.sums());
}

const std::int64_t* Grower::own_slots(const GrowNode& node, std::size_t feature) const {
  return node.histogram +
         histograms_.slots().first[codes_.where[feature].store] * histograms_.channels();
}

void Grower::search(const GrowNode& node, std::span<const std::uint32_t> features, bool in_doubt,
                    const Scratch& own, Scratch& scratch, Found& best) const {
  if (node.histogram == nullptr && codes_.width == 2) scratch.split.keys.resize(node.n_rows());
  GainParams p = gain_of(node);
  if (node.histogram != nullptr && sizes_.in_doubt()) {
    p.channels = p.outputs;
    p.min_h = std::max(p.min_h, sizes_.least_h());
  }
  const auto find = in_doubt ? &Grower::find_counted : &Grower::find_split;
  for (const std::uint32_t f : features) {
    if (own.sums != nullptr && !own.sums->varies(f)) continue;
    if (own.sums != nullptr && is_scored_with_others(f) && !in_doubt) {
      const std::size_t n = own.sums->add_candidates(f, node.sums.data(), scratch.candidates.size(),
                                                     scratch.split, scratch.room);
      scratch.candidates.resize(n, f);
      if (n + most_scored_together > most_candidates) score_candidates(p, node, scratch, best);
      continue;
    }
    score_candidates(p, node, scratch, best);
    if (p.bounded) p.direction = params_.monotone[f];
    const FeatureSplit split = (this->*find)(p, node, f, own, best.split.score, scratch);
    if (split.found) {
      best.split = split;
      best.feature = static_cast<std::int32_t>(f);
      best.left_sums = scratch.split.left;
    }
  }
  score_candidates(p, node, scratch, best);
}

// True for features of few values, of which there may be thousands.
bool Grower::is_scored_with_others(std::uint32_t feature) const {
  return !params_.random_cuts && !absolute_ && codes_.where[feature].storage != Storage::own &&
         codes_.has_missing[feature] == 0 && codes_.n_bins[feature] <= most_scored_together &&
         !codes_.has_levels(feature) && !gain_.bounded;
}

// In the order of the features, so that the first of equal splits wins, as elsewhere.
void Grower::score_candidates(const GainParams& p, const GrowNode& node, Scratch& scratch,
                              Found& best) const {
  const std::size_t n = scratch.candidates.size();
  if (n == 0) return;
  SplitScratch& split = scratch.split;
  const std::size_t found =
      grow_kernels().find_candidate(p, n, node.sums.data(), best.split.score, split);
  if (found < n) {
    const std::uint32_t feature = scratch.candidates[found];
    std::size_t first = found;
    while (first > 0 && scratch.candidates[first - 1] == feature) --first;
    best.split = {};
    best.split.score = split.scores[found];
    best.split.found = true;
    best.split.bin = static_cast<std::uint32_t>(found - first);
    best.feature = static_cast<std::int32_t>(feature);
    best.left_sums.resize(channels_);
    for (std::size_t c = 0; c < static_cast<std::size_t>(p.channels); ++c)
      best.left_sums[c] = split.prefix[c * split.stride + found];
  }
  scratch.candidates.clear();
}

FeatureSplit Grower::find_split(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                                const Scratch& own, double floor, Scratch& scratch) const {
  const GrowKernels& k = grow_kernels();
  const std::int64_t* totals = node.sums.data();
  SplitScratch& split = scratch.split;
  const bool by_set = codes_.has_levels(feature);
  if (params_.random_cuts) return find_cut(p, node, feature, own, floor, scratch);
  if (absolute_) return find_absolute(node, feature, own, floor, scratch);
  if (sorted_ != nullptr) {
    const SortedRows rows{sorted_->elements(feature, node), node.n_rows(), codes_.n_bins[feature],
                          rows_.sums(), apart(node)};
    return (by_set ? k.find_set_sorted : k.find_split_sorted)(p, rows, totals, floor, split);
  }
  const Storage storage = codes_.where[feature].storage;
  const bool is_small = node.histogram == nullptr;
  if (is_small && storage == Storage::own)
    return k.find_split_small(p, few_rows(rows_.elements(node), node.n_rows(), totals, own),
                              feature, floor, split);
  if (is_small && storage == Storage::sparse)
    return k.find_split_listed(p, own.sums->list(feature, totals, split), codes_.n_bins[feature],
                               totals, floor, split);
  const std::int64_t* sums = storage == Storage::own ? own_slots(node, feature)
                                                     : own.sums->of(feature, totals, scratch.room);
  return (by_set ? k.find_set : k.find_split)(
      p, sums, codes_.n_bins[feature], codes_.has_missing[feature] != 0, totals, floor, split);
}

// Hessian between the split candidates of a node; -1: all values are candidates.
std::int64_t Grower::apart(const GrowNode& node) const {
  if (params_.candidates != Candidates::per_node) return -1;
  std::int64_t h = 0;
  for (std::size_t k = 0; k < width_; ++k) h += sum_h(node.sums[k]);
  return static_cast<std::int64_t>(std::floor(params_.sketch_eps * static_cast<double>(h)));
}

}  // namespace arboost
