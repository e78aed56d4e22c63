// Best splits of a batch of nodes: each worker searches the features whose sums it has, or all of
// them; one exchange for the best splits of all.
#include <algorithm>
#include <cstring>

#include "grow/shards/worker_batches.h"

namespace arboost {

// The best split of a node among the features of one worker, as it is sent, followed by the sums of
// its left side.
struct SplitRecord {
  std::uint32_t node;      // of those that were searched
  std::uint32_t position;  // of the feature among those of the node: the first of equal splits wins
  std::int32_t feature;
  double gain;
  FeatureSplit split;
};

// Divides the stored columns, and so the features, among the workers, in almost equal parts of a
// histogram. For S bytes of a node's histogram and W workers, they send (W - 1) S in all, and W
// (W - 1) records of the best split; where all search all features, 2 (W - 1) S. Trees that go on
// to further features, where those of a node are constant, need all sums, and so do gain ratios.
void WorkerBatches::divide_columns() {
  const std::size_t n_workers = workers_.size(), channels = histograms_.channels();
  const std::size_t record = sizeof(SplitRecord) + channels * sizeof(std::int64_t);
  bounds_.clear();
  if (n_workers == 1 || votes_ || params_.allow_zero_gain ||
      params_.criterion == Criterion::gain_ratio ||
      histograms_.size() * sizeof(std::int64_t) < n_workers * record)
    return;
  const std::vector<std::size_t> starts = histograms_.column_starts();
  bounds_.push_back(0);
  for (std::size_t r = 1; r < n_workers; ++r) {
    const std::size_t wanted = starts.back() * r / n_workers;
    bounds_.push_back(*std::lower_bound(starts.begin(), starts.end(), wanted));
  }
  bounds_.push_back(starts.back());
  is_own_.assign(codes_.n_features, 0);
  for (std::size_t f = 0; f < codes_.n_features; ++f) {
    const std::size_t start = histograms_.column_of(f).first;
    is_own_[f] = start >= bounds_[workers_.rank()] && start < bounds_[workers_.rank() + 1];
  }
  for (std::size_t& bound : bounds_) bound *= channels;
}

// Finds the best splits of nodes with histograms; forgets those of others.
void WorkerBatches::search(std::span<GrowNode* const> nodes, Team& team) {
  const std::vector<bool> may = may_split(nodes);
  std::vector<GrowNode*> searched;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (may[i]) searched.push_back(nodes[i]);
  if (votes_ && !searched.empty()) {
    search_elected(searched, team);
  } else {
    const bool all_whole = std::all_of(searched.begin(), searched.end(),
                                       [](const GrowNode* node) { return node->is_whole; });
    const auto* is_own = bounds_.empty() || all_whole ? nullptr : &is_own_;
    team.for_chunks(0, searched.size(), 1, [&](std::size_t i, std::size_t, int member) {
      search_.find(*searched[i], member, team, is_own);
    });
    if (is_own != nullptr && !searched.empty()) share_splits(searched);
  }
  for (GrowNode* node : nodes)
    if (node->gain < 0 || histograms_.scarce()) forget(*node);
}

// Replaces the best splits among the features of each worker by the best ones of all.
void WorkerBatches::share_splits(std::span<GrowNode* const> nodes) {
  const std::size_t n_sums = policy_.channels() * sizeof(std::int64_t);
  const std::size_t size = sizeof(SplitRecord) + n_sums;
  Collective::Bytes message;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GrowNode& node = *nodes[i];
    if (node.gain < 0) continue;
    SplitRecord record{};
    record.node = static_cast<std::uint32_t>(i);
    record.position = node.position;
    record.feature = node.feature;
    record.gain = node.gain;
    record.split = node.split;
    message.resize(message.size() + size);
    std::memcpy(message.data() + message.size() - size, &record, sizeof record);
    std::memcpy(message.data() + message.size() - n_sums, node.left_sums.data(), n_sums);
  }
  const std::vector<Collective::Bytes>& received = workers_.exchange(Collective::View(message));
  std::vector<std::int64_t> left_sums(policy_.channels());
  for (std::size_t r = 0; r < received.size(); ++r) {
    if (r == workers_.rank()) continue;
    const Collective::Bytes& bytes = received[r];
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      SplitRecord record;
      std::memcpy(&record, bytes.data() + at, sizeof record);
      std::memcpy(left_sums.data(), bytes.data() + at + sizeof record, n_sums);
      take_split(*nodes[record.node], record, left_sums);
    }
  }
}

void WorkerBatches::take_split(GrowNode& node, const SplitRecord& record,
                               std::span<const std::int64_t> left_sums) const {
  const double score = record.split.score;
  if (node.gain >= 0 &&
      (node.split.score > score || (node.split.score == score && node.position < record.position)))
    return;
  node.gain = record.gain;
  node.feature = record.feature;
  node.position = record.position;
  node.split = record.split;
  node.left_sums.assign(left_sums.begin(), left_sums.end());
}

// The features of each node whose sums are added up.
std::vector<std::vector<std::uint32_t>> WorkerBatches::elect(std::span<GrowNode* const> nodes) {
  ColumnSampler::Scratch scratch;
  std::vector<std::int64_t> proposed;  // of each node: the number of proposed features, and these
  for (const GrowNode* node : nodes) {
    const std::vector<std::uint32_t> best =
        votes_->propose(node->histogram, histograms_, policy_.columns().of_node(*node, scratch),
                        policy_.gain().reg_lambda, policy_.width());
    proposed.push_back(static_cast<std::int64_t>(best.size()));
    proposed.insert(proposed.end(), best.begin(), best.end());
  }
  const std::vector<std::vector<std::int64_t>> all = workers_.gather(proposed);
  std::vector<std::size_t> at(all.size(), 0);
  std::vector<std::vector<std::uint32_t>> elected;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::vector<std::int64_t>> proposals;
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto begin = all[r].begin() + static_cast<std::ptrdiff_t>(at[r]) + 1;
      proposals.emplace_back(begin, begin + *(begin - 1));
      at[r] += 1 + proposals.back().size();
    }
    elected.push_back(votes_->elect(proposals));
  }
  return elected;
}

// Finds the best splits among the elected features, by sums of all workers; nodes keep those of
// this one.
void WorkerBatches::search_elected(std::span<GrowNode* const> nodes, Team& team) {
  const std::vector<std::vector<std::uint32_t>> elected = elect(nodes);
  const std::size_t channels = histograms_.channels();
  std::vector<std::int64_t*> local_histograms;
  std::vector<std::vector<std::uint8_t>> is_elected;
  std::vector<Collective::Numbers> sums;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    local_histograms.push_back(nodes[i]->histogram);
    nodes[i]->histogram = histograms_.acquire_zeroed();
    is_elected.emplace_back(codes_.n_features, 0);
    std::size_t last = histograms_.size();  // features may share a column
    for (const std::uint32_t f : elected[i]) {
      is_elected.back()[f] = 1;
      const auto [first, n] = histograms_.column_of(f);
      const bool is_known = std::any_of(sums.begin(), sums.end(), [&](const auto& known) {
        return known.data() == nodes[i]->histogram + first * channels;
      });
      if (first == last || is_known) continue;
      last = first;
      std::copy_n(local_histograms[i] + first * channels, n * channels,
                  nodes[i]->histogram + first * channels);
      sums.emplace_back(nodes[i]->histogram + first * channels, n * channels);
    }
  }
  workers_.sum(sums);
  team.for_chunks(0, nodes.size(), 1, [&](std::size_t i, std::size_t, int member) {
    search_.find(*nodes[i], member, team, &is_elected[i]);
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    histograms_.release(nodes[i]->histogram);
    nodes[i]->histogram = local_histograms[i];
  }
}

// Which nodes may be split, by their rows in all workers.
std::vector<bool> WorkerBatches::may_split(std::span<GrowNode* const> nodes) const {
  std::vector<bool> may(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) may[i] = policy_.may_split(*nodes[i]);
  if (!params_.allow_zero_gain) return may;
  std::vector<GrowNode*> tested;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (may[i]) tested.push_back(nodes[i]);
  std::vector<std::int64_t> local_bounds;
  for (const ValueBounds& bounds : rows_.value_bounds(tested))
    local_bounds.insert(local_bounds.end(),
                        {bounds.lower[0], bounds.lower[1], bounds.upper[0], bounds.upper[1]});
  const std::vector<std::vector<std::int64_t>> all = workers_.gather(local_bounds);
  std::size_t at = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!may[i]) continue;
    bool is_pure = true;
    for (std::size_t k = 0; k < policy_.width(); ++k, at += 4) {
      ValueBounds bounds;
      for (const std::vector<std::int64_t>& numbers : all)
        bounds.narrow({{numbers[at], numbers[at + 1]}, {numbers[at + 2], numbers[at + 3]}});
      is_pure &= !bounds.is_empty();
    }
    may[i] = !is_pure;
  }
  return may;
}

}  // namespace arboost
