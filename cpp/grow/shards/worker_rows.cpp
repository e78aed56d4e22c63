// Batches of nodes: one exchange for their numbers of rows, and one for their histograms.
#include "grow/shards/worker_rows.h"

#include <algorithm>
#include <stdexcept>

#include "base/random.h"

namespace arboost {

WorkerRows::WorkerRows(const Codes& codes, TreePolicy& policy, Workspace& workspace,
                       Collective& workers)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      workers_(workers),
      rows_(codes, {}, policy.width(), false, params_.sum_bits, workspace, workers),
      purity_(params_.allow_zero_gain
                  ? std::make_unique<Purity>(codes.n_rows, std::span<const RowId>{})
                  : nullptr),
      sizes_(codes, params_, policy.width(), true),
      histograms_(codes, params_.histogram_bytes, workspace),
      search_(codes, policy, {.rows = rows_, .histograms = histograms_, .sizes = sizes_}),
      leaves_(codes, rows_, policy.width(), workspace, workers) {
  if (params_.criterion == Criterion::absolute_error)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" needs all rows in one process: use squared_error");
}

TreeScale WorkerRows::start_tree(const Gradients& gradients, std::size_t output,
                                 const TreeRequest& request, Team& team) {
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  rows_.prepare(gradients, output, request.sample, static_cast<std::uint32_t>(bits), team);
  sizes_.start_tree(rows_, team);
  rows_.count_rows(sizes_.counting() != Counting::none);
  histograms_.use_channels(policy_.width() + (sizes_.counting() != Counting::none ? 1 : 0));
  rows_.check_targets(params_.criterion);
  if (purity_) purity_->start_tree(gradients, output, policy_.width());
  return rows_.scale();
}

void WorkerRows::open_root(TreePolicy& policy, Team& team) {
  search_.start_tree(team.size());
  if (policy.columns().samples_trees()) histograms_.use_features(policy.columns().of_tree());
  histograms_.release_all();  // of a tree that was interrupted
  GrowNode& root = policy.open_root(rows_.rows().n, false);
  const std::size_t channels = policy.channels();
  std::vector<std::int64_t> values(root.n_rows() * channels);
  rows_.read_values(rows_.elements(root), root.n_rows(), values.data());
  for (std::size_t j = 0; j < values.size(); ++j) root.sums[j % channels] += values[j];
  workers_.sum(root.sums);
  GrowNode* const nodes[] = {&root};
  if (!may_split(nodes).front()) return;
  root.histogram = histograms_.build(codes_, rows_, root, 0, team);
  workers_.sum({root.histogram, histograms_.size()});
  search_.find(root, 0, team);
}

// As many histograms as fit into memory: each node of a batch has two at a time.
std::size_t WorkerRows::batch_size() const {
  const std::size_t bytes = 2 * histograms_.size() * sizeof(std::int64_t);
  return std::clamp<std::size_t>(params_.histogram_bytes / std::max<std::size_t>(1, bytes), 1, 64);
}

void WorkerRows::expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) {
  split_rows(policy, batch, team);
  std::vector<GrowNode*> children;
  for (GrowNode* node : batch) children.insert(children.end(), {node->left, node->right});
  const std::vector<bool> searched = may_split(children);
  build_histograms(batch, searched, team);
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (searched[i]) search_.find(*children[i], 0, team);
    if (children[i]->gain < 0 || histograms_.scarce()) forget(*children[i]);
  }
}

void WorkerRows::split_rows(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) {
  std::vector<std::size_t> own;
  for (const GrowNode* node : batch) own.push_back(rows_.split(*node, 0, team));
  std::vector<std::int64_t> all(own.begin(), own.end());
  workers_.sum(all);
  for (std::size_t i = 0; i < batch.size(); ++i)
    policy.make_children(*batch[i], own[i], static_cast<std::size_t>(all[i]));
}

// Which nodes may be split, by their rows in all workers.
std::vector<bool> WorkerRows::may_split(std::span<GrowNode* const> nodes) const {
  std::vector<bool> may(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) may[i] = policy_.may_split(*nodes[i]);
  if (!purity_) return may;
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t k = 0; may[i] && k < policy_.width(); ++k) {
      const ValueBounds bounds = purity_->bounds(rows_.elements(*nodes[i]), nodes[i]->n_rows(), k);
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

// Histograms of the children that are searched. Only the smaller child's rows are read where the
// parent has a histogram: the larger child's is the parent's minus the smaller one's.
void WorkerRows::build_histograms(std::span<GrowNode* const> batch,
                                  const std::vector<bool>& searched, Team& team) {
  std::vector<std::span<std::int64_t>> built;
  const auto build = [&](GrowNode& node) {
    node.histogram = histograms_.build(codes_, rows_, node, 0, team);
    built.emplace_back(node.histogram, histograms_.size());
  };
  const auto is_smaller_left = [](const GrowNode& node) {
    return node.left->all_rows <= node.right->all_rows;
  };
  for (std::size_t i = 0; i < batch.size(); ++i) {
    GrowNode& node = *batch[i];
    const bool left = is_smaller_left(node);
    const bool search_smaller = searched[2 * i + (left ? 0 : 1)];
    const bool search_larger = searched[2 * i + (left ? 1 : 0)];
    const bool subtract = node.histogram != nullptr && search_larger;
    if (search_smaller || subtract) build(left ? *node.left : *node.right);
    if (search_larger && !subtract) build(left ? *node.right : *node.left);
  }
  workers_.sum(built);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    GrowNode& node = *batch[i];
    const bool left = is_smaller_left(node);
    const GrowNode& smaller = left ? *node.left : *node.right;
    GrowNode& larger = left ? *node.right : *node.left;
    if (node.histogram != nullptr && searched[2 * i + (left ? 1 : 0)]) {
      grow_kernels().subtract(node.histogram, smaller.histogram, histograms_.size());
      larger.histogram = node.histogram;
    } else {
      histograms_.release(node.histogram);
    }
    node.histogram = nullptr;
  }
}

void WorkerRows::forget(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

}  // namespace arboost
