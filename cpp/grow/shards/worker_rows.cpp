// Batches of nodes: one pass over the rows, and one exchange for numbers of rows and histograms.
#include "grow/shards/worker_rows.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "base/random.h"

namespace arboost {

WorkerRows::WorkerRows(const Codes& codes, std::span<const RowId> table_rows, TreePolicy& policy,
                       Workspace& workspace, Collective& workers)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      workers_(workers),
      rows_(codes, table_rows, policy.width(), false, params_.sum_bits, workspace, workers),
      purity_(params_.allow_zero_gain ? std::make_unique<Purity>(codes.n_rows, table_rows)
                                      : nullptr),
      sizes_(codes, params_, policy.width(), true),
      histograms_(codes, params_.histogram_bytes, workspace),
      search_(codes, policy, {.rows = rows_, .histograms = histograms_, .sizes = sizes_}),
      leaves_(codes, rows_, policy.width(), workspace, workers) {
  if (params_.criterion == Criterion::absolute_error)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" needs all rows in the memory of one process: use "
        "squared_error");
  rows_.use_stretches();
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
  GrowNode& root = policy.open_root(rows_.rows().n, false);
  rows_.stretches().open_root(root, rows_.rows());
  add_up(root, team);
  GrowNode* const nodes[] = {&root};
  if (!may_split(nodes).front()) return;
  root.histogram = histograms_.acquire_zeroed();
  pass({}, nodes, team);
  workers_.sum({root.histogram, histograms_.size()});
  search_.find(root, 0, team);
}

// The root's sums, over all workers.
void WorkerRows::add_up(GrowNode& root, Team& team) {
  constexpr std::size_t chunk = 16384;
  const std::size_t channels = policy_.channels();
  const Element* elements = rows_.elements(root);
  std::mutex mutex;
  team.for_chunks(0, root.n_rows(), chunk, [&](std::size_t begin, std::size_t end, int) {
    std::vector<std::int64_t> values((end - begin) * channels), own(channels);
    rows_.read_values(elements + begin, end - begin, values.data());
    for (std::size_t j = 0; j < values.size(); ++j) own[j % channels] += values[j];
    std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < channels; ++k) root.sums[k] += own[k];
  });
  workers_.sum(root.sums);
}

// As many histograms as fit into memory: each node of a batch has two at a time.
std::size_t WorkerRows::batch_size() const {
  const std::size_t bytes = 2 * histograms_.size() * sizeof(std::int64_t);
  return std::clamp<std::size_t>(params_.histogram_bytes / std::max<std::size_t>(1, bytes), 1,
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
  std::vector<std::span<std::int64_t>> sums;
  for (GrowNode* node : built) {
    node->histogram = histograms_.acquire_zeroed();
    sums.emplace_back(node->histogram, histograms_.size());
  }
  pass(batch, built, team);
  workers_.sum(sums);
  place_children(policy, batch);
  for (const auto& [node, smaller, larger, subtracts] : siblings) {
    if (subtracts) {
      grow_kernels().subtract(node->histogram, smaller->histogram, histograms_.size());
      larger->histogram = node->histogram;
    } else {
      histograms_.release(node->histogram);
    }
    node->histogram = nullptr;
  }
  const std::vector<bool> searched = may_split(children);
  team.for_chunks(0, children.size(), 1, [&](std::size_t i, std::size_t, int member) {
    if (searched[i]) search_.find(*children[i], member, team);
  });
  for (GrowNode* child : children)
    if (child->gain < 0 || histograms_.scarce()) forget(*child);
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

void WorkerRows::place_children(TreePolicy& policy, std::span<GrowNode* const> batch) {
  std::vector<std::int64_t> own, all;
  for (const GrowNode* node : batch) {
    std::int64_t n_left = 0;
    rows_.each_range(*node->left, [&](const Element*, std::size_t n) {
      n_left += static_cast<std::int64_t>(n);
    });
    own.push_back(n_left);
  }
  all = own;
  workers_.sum(all);
  for (std::size_t i = 0; i < batch.size(); ++i)
    policy.place_children(*batch[i], static_cast<std::size_t>(own[i]),
                          static_cast<std::size_t>(all[i]));
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
