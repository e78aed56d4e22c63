// One pass over the rows for a batch of nodes.
#include "grow/shards/worker_rows.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "base/random.h"

namespace arboost {

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
      batches_(codes, policy, histograms_, search_, workers, n_votes, *this),
      leaves_(table, rows_, policy.width(), workspace, workers) {
  if (params_.criterion == Criterion::absolute_error)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" needs all rows in the memory of one process: use "
        "squared_error");
  rows_.use_stretches();
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

void WorkerRows::grow(TreePolicy& policy, Team& team) {
  if (policy.columns().samples_trees()) histograms_.use_features(policy.columns().of_tree());
  batches_.grow_by_batches(policy, team);
}

// Every row is in one slot of each stored column: one of them has the sums.
void WorkerRows::build_root(GrowNode& root, Team& team) {
  rows_.stretches().open_root(root, rows_.rows());
  GrowNode* const nodes[] = {&root};
  pass({}, nodes, team);
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

std::vector<std::int64_t> WorkerRows::divide(std::span<GrowNode* const> nodes,
                                             std::span<GrowNode* const> built, Team& team) {
  for (const GrowNode* node : nodes) rows_.stretches().open_children(*node);
  pass(nodes, built, team);
  std::vector<std::int64_t> n_left;
  for (const GrowNode* node : nodes) {
    n_left.push_back(0);
    rows_.each_range(*node->left, [&](const Element*, std::size_t n) {
      n_left.back() += static_cast<std::int64_t>(n);
    });
  }
  return n_left;
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

std::vector<ValueBounds> WorkerRows::value_bounds(std::span<GrowNode* const> nodes) {
  std::vector<ValueBounds> all;
  for (const GrowNode* node : nodes)
    for (std::size_t k = 0; k < policy_.width(); ++k) {
      ValueBounds& bounds = all.emplace_back();
      rows_.each_range(*node, [&](const Element* elements, std::size_t n) {
        if (!bounds.is_empty()) bounds.narrow(purity_->bounds(elements, n, k));
      });
    }
  return all;
}

}  // namespace arboost
