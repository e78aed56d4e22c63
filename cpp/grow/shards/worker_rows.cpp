// Batches of nodes: one pass over the rows, one exchange for numbers of rows and histograms, and
// one for the best splits.
#include "grow/shards/worker_rows.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "base/random.h"

namespace arboost {

// The best split of a node among the features of one worker, as it is sent, followed by the sums of
// its left side.
struct SplitRecord {
  std::uint32_t node;   // of those that were searched
  std::uint32_t place;  // of the feature among those of the node: the first of equal splits wins
  std::int32_t feature;
  double gain;
  FeatureSplit split;
};

namespace {

// All workers keep as many histograms as the one that has least memory.
std::size_t agreed_bytes(std::size_t bytes, Collective& workers) {
  if (workers.size() == 1) return bytes;
  std::int64_t least[] = {-static_cast<std::int64_t>(bytes)};
  workers.max(least);
  return static_cast<std::size_t>(-least[0]);
}

}  // namespace

WorkerRows::WorkerRows(const Codes& codes, std::span<const RowId> table_rows, TreePolicy& policy,
                       Workspace& workspace, Collective& workers, std::size_t n_votes)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      workers_(workers),
      rows_(codes, table_rows, policy.width(), false, params_.sum_bits, workspace, workers),
      purity_(params_.allow_zero_gain ? std::make_unique<Purity>(codes.n_rows, table_rows)
                                      : nullptr),
      sizes_(codes, params_, policy.width(), true),
      histograms_(codes, agreed_bytes(params_.histogram_bytes, workers), workspace),
      search_(codes, policy, {.rows = rows_, .histograms = histograms_, .sizes = sizes_}),
      leaves_(codes, rows_, policy.width(), workspace, workers) {
  if (params_.criterion == Criterion::absolute_error)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" needs all rows in the memory of one process: use "
        "squared_error");
  rows_.use_stretches();
  // Voting pays where most features are left out; nodes of constant features need all sums.
  if (n_votes > 0 && workers.size() > 1 && !params_.allow_zero_gain && codes.n_stores > 0 &&
      4 * n_votes < codes.n_features)
    votes_ = std::make_unique<FeatureVotes>(codes, n_votes, policy.width() + 1);
}

TreeScale WorkerRows::start_tree(const Gradients& gradients, std::size_t output,
                                 const TreeRequest& request, Team& team) {
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  rows_.prepare(gradients, output, request.sample, static_cast<std::uint32_t>(bits), team);
  sizes_.start_tree(rows_, workers_, team);
  const bool counted = sizes_.counting() != Counting::none;
  rows_.count_rows(counted);
  histograms_.use_channels(policy_.width() + (counted ? 1 : 0));
  rows_.check_targets(params_.criterion);
  if (purity_) purity_->start_tree(gradients, output, policy_.width());
  TreeScale scale = rows_.scale();
  if (!counted) scale.least_h = sizes_.least_h();
  return scale;
}

void WorkerRows::open_root(TreePolicy& policy, Team& team) {
  search_.start_tree(team.size());
  if (policy.columns().samples_trees()) histograms_.use_features(policy.columns().of_tree());
  histograms_.release_all();  // of a tree that was interrupted
  divide_columns();
  GrowNode& root = policy.open_root(rows_.rows().n, false);
  rows_.stretches().open_root(root, rows_.rows());
  GrowNode* const nodes[] = {&root};
  root.histogram = histograms_.acquire_zeroed();
  pass({}, nodes, team);
  add_up(root, team);
  sum_histograms(nodes, root.sums);
  search(nodes, team);
}

// The root's sums in this worker: every row is in one slot of each stored column.
void WorkerRows::add_up(GrowNode& root, Team& team) const {
  constexpr std::size_t chunk = 16384;
  const std::size_t channels = policy_.channels();
  if (histograms_.slots().n_stores > 0) {
    const std::size_t n = histograms_.column_starts()[1] * channels;
    for (std::size_t i = 0; i < n; ++i) root.sums[i % channels] += root.histogram[i];
    return;
  }
  const Element* elements = rows_.elements(root);
  std::mutex mutex;
  team.for_chunks(0, root.n_rows(), chunk, [&](std::size_t begin, std::size_t end, int) {
    std::vector<std::int64_t> values((end - begin) * channels), own(channels);
    rows_.read_values(elements + begin, end - begin, values.data());
    for (std::size_t j = 0; j < values.size(); ++j) own[j % channels] += values[j];
    std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < channels; ++k) root.sums[k] += own[k];
  });
}

// Divides the stored columns, and so the features, among the workers, in almost equal parts of a
// histogram. For S bytes of a node's histogram and W workers, they send (W - 1) S in all, and W
// (W - 1) records of the best split; where all search all features, 2 (W - 1) S. Trees that go on
// to further features, where those of a node are constant, need all sums.
void WorkerRows::divide_columns() {
  const std::size_t n_workers = workers_.size(), channels = histograms_.channels();
  const std::size_t record = sizeof(SplitRecord) + channels * sizeof(std::int64_t);
  bounds_.clear();
  if (n_workers == 1 || votes_ || params_.allow_zero_gain ||
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

// Adds up the histograms of nodes, or this worker's part of them, and a few numbers.
void WorkerRows::sum_histograms(std::span<GrowNode* const> built, Collective::Numbers numbers) {
  if (votes_) return workers_.sum(numbers);
  std::vector<Collective::Numbers> sums;
  for (GrowNode* node : built) sums.emplace_back(node->histogram, histograms_.size());
  if (!bounds_.empty()) return workers_.sum_parts(sums, bounds_, numbers);
  sums.push_back(numbers);
  workers_.sum(sums);
}

// As many histograms as fit into memory: each node of a batch has two at a time, with voting four.
std::size_t WorkerRows::batch_size() const {
  const std::size_t bytes = (votes_ ? 4 : 2) * histograms_.size() * sizeof(std::int64_t);
  return std::clamp<std::size_t>(histograms_.memory_limit() / std::max<std::size_t>(1, bytes), 1,
                                 1024);
}

void WorkerRows::expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) {
  std::vector<Siblings> siblings;
  std::vector<GrowNode*> children, built;
  for (GrowNode* node : batch) {
    siblings.push_back(open_children(policy, *node));
    const auto& [parent, smaller, larger, subtracts] = siblings.back();
    children.insert(children.end(), {parent->left, parent->right});
    if (subtracts || may_ever_split(*smaller)) built.push_back(smaller);
    if (!subtracts && may_ever_split(*larger)) built.push_back(larger);
  }
  for (GrowNode* node : built) node->histogram = histograms_.acquire_zeroed();
  pass(batch, built, team);
  const std::vector<std::int64_t> own_left = left_rows(batch);
  std::vector<std::int64_t> all_left = own_left;
  // Where no child may be split, none needs its number of rows.
  const bool may_split_any = std::any_of(children.begin(), children.end(),
                                         [&](GrowNode* child) { return may_ever_split(*child); });
  if (may_split_any) sum_histograms(built, all_left);
  for (std::size_t i = 0; i < batch.size(); ++i)
    policy.place_children(*batch[i], static_cast<std::size_t>(own_left[i]),
                          static_cast<std::size_t>(all_left[i]));
  const std::size_t begin = bounds_.empty() ? 0 : bounds_[workers_.rank()];
  const std::size_t end = bounds_.empty() ? histograms_.size() : bounds_[workers_.rank() + 1];
  for (const auto& [node, smaller, larger, subtracts] : siblings) {
    if (subtracts) {
      grow_kernels().subtract(node->histogram + begin, smaller->histogram + begin, end - begin);
      larger->histogram = node->histogram;
    } else {
      histograms_.release(node->histogram);
    }
    node->histogram = nullptr;
  }
  search(children, team);
}

// Finds the best splits of nodes with histograms; forgets those of others.
void WorkerRows::search(std::span<GrowNode* const> nodes, Team& team) {
  const std::vector<bool> may = may_split(nodes);
  std::vector<GrowNode*> searched;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (may[i]) searched.push_back(nodes[i]);
  if (votes_ && !searched.empty()) {
    search_elected(searched, team);
  } else {
    const auto* is_own = bounds_.empty() ? nullptr : &is_own_;
    team.for_chunks(0, searched.size(), 1, [&](std::size_t i, std::size_t, int member) {
      search_.find(*searched[i], member, team, is_own);
    });
    if (is_own != nullptr && !searched.empty()) share_splits(searched);
  }
  for (GrowNode* node : nodes)
    if (node->gain < 0 || histograms_.scarce()) forget(*node);
}

// Replaces the best splits among the features of each worker by the best ones of all.
void WorkerRows::share_splits(std::span<GrowNode* const> nodes) {
  const std::size_t n_sums = policy_.channels() * sizeof(std::int64_t);
  const std::size_t size = sizeof(SplitRecord) + n_sums;
  Collective::Bytes message;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GrowNode& node = *nodes[i];
    if (node.gain < 0) continue;
    SplitRecord record{};
    record.node = static_cast<std::uint32_t>(i);
    record.place = node.place;
    record.feature = node.feature;
    record.gain = node.gain;
    record.split = node.split;
    message.resize(message.size() + size);
    std::memcpy(message.data() + message.size() - size, &record, sizeof record);
    std::memcpy(message.data() + message.size() - n_sums, node.left_sums.data(), n_sums);
  }
  const std::vector<Collective::Bytes> received = workers_.exchange(Collective::View(message));
  std::vector<std::int64_t> left_sums(policy_.channels());
  for (const Collective::Bytes& bytes : received)
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      SplitRecord record;
      std::memcpy(&record, bytes.data() + at, sizeof record);
      std::memcpy(left_sums.data(), bytes.data() + at + sizeof record, n_sums);
      take_split(*nodes[record.node], record, left_sums);
    }
}

void WorkerRows::take_split(GrowNode& node, const SplitRecord& record,
                            std::span<const std::int64_t> left_sums) const {
  const double score = record.split.score;
  if (node.gain >= 0 &&
      (node.split.score > score || (node.split.score == score && node.place < record.place)))
    return;
  node.gain = record.gain;
  node.feature = record.feature;
  node.place = record.place;
  node.split = record.split;
  node.left_sums.assign(left_sums.begin(), left_sums.end());
}

// The features of each node whose sums are added up.
std::vector<std::vector<std::uint32_t>> WorkerRows::elect(std::span<GrowNode* const> nodes) {
  ColumnSampler::Room room;
  std::vector<std::int64_t> own;  // of each node: the number of proposed features, and these
  for (const GrowNode* node : nodes) {
    const std::vector<std::uint32_t> best =
        votes_->propose(node->histogram, histograms_, policy_.columns().of_node(*node, room),
                        policy_.gain().reg_lambda, policy_.width());
    own.push_back(static_cast<std::int64_t>(best.size()));
    own.insert(own.end(), best.begin(), best.end());
  }
  const std::vector<std::vector<std::int64_t>> all = workers_.gather(own);
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
void WorkerRows::search_elected(std::span<GrowNode* const> nodes, Team& team) {
  const std::vector<std::vector<std::uint32_t>> elected = elect(nodes);
  const std::size_t channels = histograms_.channels();
  std::vector<std::int64_t*> own;
  std::vector<std::vector<std::uint8_t>> is_elected;
  std::vector<Collective::Numbers> sums;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    own.push_back(nodes[i]->histogram);
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
      std::copy_n(own[i] + first * channels, n * channels, nodes[i]->histogram + first * channels);
      sums.emplace_back(nodes[i]->histogram + first * channels, n * channels);
    }
  }
  workers_.sum(sums);
  team.for_chunks(0, nodes.size(), 1, [&](std::size_t i, std::size_t, int member) {
    search_.find(*nodes[i], member, team, &is_elected[i]);
  });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    histograms_.release(nodes[i]->histogram);
    nodes[i]->histogram = own[i];
  }
}

// By all that is known before the rows are divided.
bool WorkerRows::may_ever_split(const GrowNode& node) const {
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
  return policy_.may_split(node.depth, any, node.sums.data());
}

WorkerRows::Siblings WorkerRows::open_children(TreePolicy& policy, GrowNode& node) {
  policy.open_children(node);
  rows_.stretches().make_room(*node.right);  // the later one
  std::int64_t difference = 0;
  for (std::size_t k = 0; k < policy_.width(); ++k)
    difference += std::int64_t{sum_h(node.left->sums[k])} - sum_h(node.right->sums[k]);
  const bool left = difference <= 0;
  GrowNode* larger = left ? node.right : node.left;
  return {&node, left ? node.left : node.right, larger,
          node.histogram != nullptr && may_ever_split(*larger)};
}

// Divides nodes, and adds the rows of nodes, new ones or the root, to their histograms.
void WorkerRows::pass(std::span<GrowNode* const> divided, std::span<GrowNode* const> built,
                      Team& team) {
  std::vector<SplitRule> rules;
  for (const GrowNode* node : divided) rules.push_back(rows_.rule(*node));
  Stretches& stretches = rows_.stretches();
  // Few histograms occupy all threads if their columns are divided.
  const std::size_t tasks = 4 * static_cast<std::size_t>(team.size());
  const std::size_t most_parts = std::max<std::size_t>(1, histograms_.slots().n_stores / 8);
  const std::size_t n_parts = team.size() == 1 || built.empty()
                                  ? 1
                                  : std::clamp<std::size_t>(tasks / built.size(), 1, most_parts);
  codes_.each_window(0, codes_.n_rows, [&](const RowWindow& window) {
    const std::size_t first = stretches.first_of(window.begin), n = stretches.per_window();
    team.for_chunks(0, divided.size() * n, 1, [&](std::size_t task, std::size_t, int member) {
      const std::size_t i = task / n;
      rows_.split_stretch(*divided[i], rules[i], first + task % n, window, member);
    });
    team.for_chunks(0, built.size() * n_parts, 1, [&](std::size_t task, std::size_t, int) {
      const GrowNode& node = *built[task / n_parts];
      for (std::size_t s = first; s < first + n; ++s) {
        const Stretches::Range range = stretches.of(node, s);
        if (range.size() > 0)
          histograms_.add(codes_.row_codes(window), rows_, rows_.elements(range), range.size(),
                          task % n_parts, n_parts, node.histogram);
      }
    });
  });
}

// The rows of this worker that go to the left child of each node.
std::vector<std::int64_t> WorkerRows::left_rows(std::span<GrowNode* const> batch) const {
  std::vector<std::int64_t> own;
  for (const GrowNode* node : batch) {
    std::int64_t n_left = 0;
    rows_.each_range(*node->left, [&](const Element*, std::size_t n) {
      n_left += static_cast<std::int64_t>(n);
    });
    own.push_back(n_left);
  }
  return own;
}

// Which nodes may be split, by their rows in all workers.
std::vector<bool> WorkerRows::may_split(std::span<GrowNode* const> nodes) const {
  std::vector<bool> may(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) may[i] = policy_.may_split(*nodes[i]);
  if (!purity_) return may;
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t k = 0; may[i] && k < policy_.width(); ++k) {
      ValueBounds bounds;
      rows_.each_range(*nodes[i], [&](const Element* elements, std::size_t n) {
        if (!bounds.is_empty()) bounds.narrow(purity_->bounds(elements, n, k));
      });
      own.insert(own.end(), {bounds.lower[0], bounds.lower[1], bounds.upper[0], bounds.upper[1]});
    }
  const std::vector<std::vector<std::int64_t>> all = workers_.gather(own);
  std::size_t at = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!may[i]) continue;
    bool is_pure = true;
    for (std::size_t k = 0; k < policy_.width(); ++k, at += 4) {
      ValueBounds bounds;
      for (const std::vector<std::int64_t>& one : all)
        bounds.narrow({{one[at], one[at + 1]}, {one[at + 2], one[at + 3]}});
      is_pure &= !bounds.is_empty();
    }
    may[i] = !is_pure;
  }
  return may;
}

void WorkerRows::forget(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

}  // namespace arboost
