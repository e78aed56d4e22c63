// One scan of a node's histogram; a score is that of the second-order gain without limits, because
// it only orders the features.
#include "grow/shards/feature_votes.h"

#include <algorithm>
#include <map>
#include <utility>  // pair

#include "tree/tree_rows.h"  // sums of pairs

namespace arboost {

FeatureVotes::FeatureVotes(const Codes& codes, std::size_t n_votes, std::size_t most_channels)
    : codes_(codes), n_votes_(n_votes), sums_(codes, most_channels) {}

std::vector<std::uint32_t> FeatureVotes::propose(const std::int64_t* histogram,
                                                 const Histograms& histograms,
                                                 std::span<const std::uint32_t> allowed,
                                                 double reg_lambda, std::size_t outputs) {
  const std::size_t channels = histograms.channels();
  const Slots& slots = histograms.slots();
  // Every row of the node is in one slot of each stored column.
  const std::vector<std::size_t> starts = histograms.column_starts();
  totals_.assign(channels, 0);
  for (std::size_t i = 0; slots.n_stores > 0 && i < starts[1] * channels; ++i)
    totals_[i % channels] += histogram[i];
  sums_.open(histogram, slots, channels);
  std::vector<std::pair<double, std::uint32_t>> scores;
  for (const std::uint32_t f : allowed) {
    const std::int64_t* sums = codes_.where[f].kind == Storage::single
                                   ? histogram + slots.first[codes_.where[f].store] * channels
                                   : sums_.of(f, totals_.data(), buffer_);
    scores.emplace_back(-best_score(sums, codes_.n_codes(f), channels, outputs, reg_lambda), f);
  }
  const std::size_t n = std::min(n_votes_, scores.size());
  std::partial_sort(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(n), scores.end());
  std::vector<std::uint32_t> best;
  for (std::size_t i = 0; i < n; ++i) best.push_back(scores[i].second);
  return best;
}

double FeatureVotes::best_score(const std::int64_t* sums, std::size_t n_codes, std::size_t channels,
                                std::size_t outputs, double reg_lambda) const {
  double best = 0;
  std::vector<std::int64_t> left(outputs, 0);
  for (std::size_t code = 0; code + 1 < n_codes; ++code) {
    double score = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      left[k] += sums[code * channels + k];
      const PackedSum right = totals_[k] - left[k];
      const auto side = [&](PackedSum sum) {
        const double g = sum_g(sum), h = sum_h(sum);
        return h > 0 ? g * g / (h + reg_lambda) : 0.0;
      };
      score += side(left[k]) + side(right);
    }
    best = std::max(best, score);
  }
  return best;
}

std::vector<std::uint32_t> FeatureVotes::elect(
    std::span<const std::vector<std::int64_t>> proposals) const {
  std::map<std::uint32_t, std::size_t> votes;
  for (const std::vector<std::int64_t>& of_worker : proposals)
    for (const std::int64_t feature : of_worker) ++votes[static_cast<std::uint32_t>(feature)];
  std::vector<std::pair<std::size_t, std::uint32_t>> order;
  for (const auto& [feature, n] : votes) order.emplace_back(n, feature);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::uint32_t> elected;
  for (std::size_t i = 0; i < std::min(2 * n_votes_, order.size()); ++i)
    elected.push_back(order[i].second);
  std::sort(elected.begin(), elected.end());
  return elected;
}

}  // namespace arboost
