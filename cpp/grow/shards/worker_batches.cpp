// Batches of nodes: one pass over the rows, one exchange for numbers of rows and histograms, and
// one for the best splits.
#include "grow/shards/worker_batches.h"

#include <algorithm>
#include <limits>

namespace arboost {

std::size_t agreed_bytes(std::size_t bytes, Collective& workers) {
  if (workers.size() == 1) return bytes;
  std::int64_t least[] = {-static_cast<std::int64_t>(bytes)};
  workers.max(least);
  return static_cast<std::size_t>(-least[0]);
}

WorkerBatches::WorkerBatches(const Codes& codes, TreePolicy& policy, Histograms& histograms,
                             SplitSearch& search, Collective& workers, std::size_t n_votes,
                             BatchRows& rows)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      histograms_(histograms),
      search_(search),
      workers_(workers),
      rows_(rows) {
  // Voting pays where most features are left out; nodes of constant features need all sums.
  if (n_votes > 0 && workers.size() > 1 && !params_.allow_zero_gain && codes.n_stores > 0 &&
      4 * n_votes < codes.n_features)
    votes_ = std::make_unique<FeatureVotes>(codes, n_votes, policy.width() + 1);
}

void WorkerBatches::open_root(TreePolicy& policy, Team& team) {
  search_.start_tree(team.size());
  histograms_.release_all();  // of a tree that was interrupted
  divide_columns();
  GrowNode& root = policy.open_root(rows_.n_tree_rows(), false);
  GrowNode* const nodes[] = {&root};
  root.histogram = histograms_.acquire_zeroed();
  rows_.build_root(root, team);
  root.is_whole = sums_all(nodes, true);
  sum_histograms(nodes, root.is_whole, root.sums);
  search(nodes, team);
}

// Whether the sums of all columns go to all workers. Few numbers cost less than another exchange.
// Differences are as whole as the histograms that they come from.
bool WorkerBatches::sums_all(std::span<GrowNode* const> built, bool from_whole) const {
  constexpr std::size_t few_numbers = std::size_t{1} << 16;
  const std::size_t sent = (workers_.size() - 1) * built.size() * histograms_.size();
  return bounds_.empty() || (from_whole && sent <= few_numbers);
}

// Adds up the histograms of nodes, in all workers or this one's part, and a few numbers.
void WorkerBatches::sum_histograms(std::span<GrowNode* const> built, bool all,
                                   Collective::Numbers numbers) {
  if (votes_) return workers_.sum(numbers);
  std::vector<Collective::Numbers> sums;
  for (GrowNode* node : built) sums.emplace_back(node->histogram, histograms_.size());
  if (!all) return workers_.sum_parts(sums, bounds_, numbers);
  sums.push_back(numbers);
  bounds_.empty() ? workers_.sum(sums) : workers_.sum_everywhere(sums);
}

// As many histograms as fit into memory: each node of a batch has two at a time, with voting four.
std::size_t WorkerBatches::batch_size() const {
  const std::size_t bytes = (votes_ ? 4 : 2) * histograms_.size() * sizeof(std::int64_t);
  return std::clamp<std::size_t>(histograms_.memory_limit() / std::max<std::size_t>(1, bytes), 1,
                                 1024);
}

void WorkerBatches::expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) {
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
  const std::vector<std::int64_t> own_left = rows_.divide(batch, built, team);
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
bool WorkerBatches::may_ever_split(const GrowNode& node) const {
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
  return policy_.may_split(node.depth, any, node.sums.data());
}

WorkerBatches::Siblings WorkerBatches::open_children(TreePolicy& policy, GrowNode& node) {
  policy.open_children(node);
  std::int64_t difference = 0;
  for (std::size_t k = 0; k < policy_.width(); ++k)
    difference += std::int64_t{sum_h(node.left->sums[k])} - sum_h(node.right->sums[k]);
  const bool left = difference <= 0;
  GrowNode* larger = left ? node.right : node.left;
  return {&node, left ? node.left : node.right, larger,
          node.histogram != nullptr && may_ever_split(*larger)};
}

void WorkerBatches::forget(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

}  // namespace arboost
