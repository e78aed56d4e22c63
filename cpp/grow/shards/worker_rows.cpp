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

namespace {

// All workers keep as many histograms as the one that has least memory.
std::size_t agreed_bytes(std::size_t bytes, Collective& workers) {
  if (workers.size() == 1) return bytes;
  std::int64_t least[] = {-static_cast<std::int64_t>(bytes)};
  workers.max(least);
  return static_cast<std::size_t>(-least[0]);
}

}  // namespace

WorkerRows::WorkerRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
                       TreePolicy& policy, Workspace& workspace, Collective& workers,
                       std::size_t n_votes)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      workers_(workers),
      rows_(codes, table_rows, policy.width(), params_.sums_are_wide(), params_.sum_bits, workspace,
            workers),
      purity_(params_.allow_zero_gain ? std::make_unique<Purity>(codes.n_rows, table_rows)
                                      : nullptr),
      sizes_(codes, params_, policy.width(), true),
      histograms_(codes, agreed_bytes(params_.histogram_bytes, workers), workspace),
      search_(codes, policy, {.rows = rows_, .histograms = histograms_, .sizes = sizes_}),
      leaves_(table, rows_, policy.width(), workspace, workers) {
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
  const bool is_tolerant = request.part.tolerance > 1;
  rows_.prepare(gradients, output, request.sample, static_cast<std::uint32_t>(bits), !is_tolerant,
                team);
  sizes_.start_tree(rows_, workers_, team);
  const bool counted = sizes_.counting() != Counting::none;
  rows_.count_rows(counted);
  histograms_.use_channels(policy_.width() + (counted ? 1 : 0));
  rows_.check_targets(params_.criterion);
  if (purity_) purity_->start_tree(gradients, output, policy_.width(), request.part.tolerance);
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
  root.is_whole = sums_all(nodes, true);
  sum_histograms(nodes, root.is_whole, root.sums);
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
    std::vector<std::int64_t> values((end - begin) * channels), chunk_sums(channels);
    rows_.read_values(elements + begin, end - begin, values.data());
    for (std::size_t j = 0; j < values.size(); ++j) chunk_sums[j % channels] += values[j];
    std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < channels; ++k) root.sums[k] += chunk_sums[k];
  });
}

// Whether the sums of all columns go to all workers. Few numbers cost less than another exchange.
// Differences are as whole as the histograms that they come from.
bool WorkerRows::sums_all(std::span<GrowNode* const> built, bool from_whole) const {
  constexpr std::size_t few_numbers = std::size_t{1} << 16;
  const std::size_t sent = (workers_.size() - 1) * built.size() * histograms_.size();
  return bounds_.empty() || (from_whole && sent <= few_numbers);
}

// Adds up the histograms of nodes, in all workers or this one's part, and a few numbers.
void WorkerRows::sum_histograms(std::span<GrowNode* const> built, bool all,
                                Collective::Numbers numbers) {
  if (votes_) return workers_.sum(numbers);
  std::vector<Collective::Numbers> sums;
  for (GrowNode* node : built) sums.emplace_back(node->histogram, histograms_.size());
  if (!all) return workers_.sum_parts(sums, bounds_, numbers);
  sums.push_back(numbers);
  bounds_.empty() ? workers_.sum(sums) : workers_.sum_everywhere(sums);
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
  const bool from_whole =
      std::all_of(batch.begin(), batch.end(), [](const GrowNode* node) { return node->is_whole; });
  const bool all = sums_all(built, from_whole);
  if (may_split_any) sum_histograms(built, all, all_left);
  for (GrowNode* child : children) child->is_whole = all;
  for (std::size_t i = 0; i < batch.size(); ++i)
    policy.place_children(*batch[i], static_cast<std::size_t>(own_left[i]),
                          static_cast<std::size_t>(all_left[i]));
  const std::size_t begin = all ? 0 : bounds_[workers_.rank()];
  const std::size_t end = all ? histograms_.size() : bounds_[workers_.rank() + 1];
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

// By all that is known before the rows are divided.
bool WorkerRows::may_ever_split(const GrowNode& node) const {
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
  return policy_.may_split(node.depth, any, node.sums.data());
}

WorkerRows::Siblings WorkerRows::open_children(TreePolicy& policy, GrowNode& node) {
  policy.open_children(node);
  rows_.stretches().open_children(node);
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
  // Few histograms occupy all threads if their columns are divided: eight columns or more a part,
  // which share the reading of a row, or two where a thread would have nothing to do otherwise.
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t tasks = 4 * members, n_stores = histograms_.slots().n_stores;
  const std::size_t members_per_node = members / std::max<std::size_t>(1, built.size());
  const std::size_t most_parts =
      std::max({std::size_t{1}, n_stores / 8, std::min(members_per_node, n_stores / 2)});
  const std::size_t n_parts = members == 1 || built.empty()
                                  ? 1
                                  : std::clamp<std::size_t>(tasks / built.size(), 1, most_parts);
  codes_.each_window(0, codes_.n_rows, [&](const RowWindow& window) {
    const std::size_t n = stretches.per_window();
    team.for_chunks(0, divided.size() * n, 1, [&](std::size_t task, std::size_t, int member) {
      const std::size_t i = task / n;
      const auto ranges = stretches.of(*divided[i], window.begin);
      if (task % n < ranges.size())
        rows_.split_stretch(*divided[i], rules[i], ranges[task % n], window, member);
    });
    team.for_chunks(0, built.size() * n_parts, 1, [&](std::size_t task, std::size_t, int) {
      const GrowNode& node = *built[task / n_parts];
      for (const Stretches::Range& range : stretches.of(node, window.begin))
        if (range.size() > 0)
          histograms_.add(codes_.row_codes(window), rows_, rows_.elements(range), range.size(),
                          task % n_parts, n_parts, node.histogram);
    });
  });
  for (const GrowNode* node : divided) stretches.close(*node);
}

// The rows of this worker that go to the left child of each node.
std::vector<std::int64_t> WorkerRows::left_rows(std::span<GrowNode* const> batch) const {
  std::vector<std::int64_t> numbers_left;
  for (const GrowNode* node : batch) {
    std::int64_t n_left = 0;
    rows_.each_range(*node->left, [&](const Element*, std::size_t n) {
      n_left += static_cast<std::int64_t>(n);
    });
    numbers_left.push_back(n_left);
  }
  return numbers_left;
}

void WorkerRows::forget(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

}  // namespace arboost
