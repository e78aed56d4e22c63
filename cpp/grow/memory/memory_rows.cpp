// The growth loop of threads.
#include "grow/memory/memory_rows.h"

#include <algorithm>

#include "base/random.h"

namespace arboost {
namespace {

// Counts the nodes that threads are expanding.
class Expanding {
 public:
  explicit Expanding(std::atomic<std::size_t>& n) : n_(n) { ++n_; }
  ~Expanding() { --n_; }
  Expanding(const Expanding&) = delete;
  Expanding& operator=(const Expanding&) = delete;

 private:
  std::atomic<std::size_t>& n_;
};

}  // namespace

MemoryRows::MemoryRows(const Codes& table, const Codes& codes, const Ranks* ranks,
                       std::span<const RowId> table_rows, TreePolicy& policy, Workspace& workspace)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      rows_(codes, table_rows, policy.width(), codes.width == 4 || params_.sums_are_wide(),
            params_.sum_bits, workspace, alone_),
      purity_(params_.allow_zero_gain ? std::make_unique<Purity>(codes.n_rows, table_rows)
                                      : nullptr),
      absolute_(params_.criterion == Criterion::absolute_error
                    ? std::make_unique<AbsoluteRows>(codes.n_rows, policy.width())
                    : nullptr),
      sorted_(ranks != nullptr || params_.candidates == Candidates::per_node
                  ? std::make_unique<SortedColumns>(codes, ranks, rows_.n_training())
                  : nullptr),
      sizes_(codes, params_, policy.width(), false),
      histograms_(codes, params_.histogram_bytes, workspace),
      search_(codes, policy,
              {.rows = rows_,
               .histograms = histograms_,
               .sizes = sizes_,
               .sorted = sorted_.get(),
               .absolute = absolute_.get()}),
      subtrees_(codes, policy, search_, rows_, purity_.get(), workspace),
      leaves_(table, rows_, policy.width(), workspace, alone_) {
  set_small_rows();
}

void MemoryRows::set_small_rows() {
  // Below this, a pass over all bins of a histogram costs more than a pass over the rows.
  small_rows_ = static_cast<std::size_t>(static_cast<double>(histograms_.slots().n_slots) /
                                         histograms_.updates_per_row() / 4);
  if (codes_.width == 2) small_rows_ = std::min<std::size_t>(small_rows_, 512);  // rows are sorted
  if (params_.random_cuts) {
    // Two loops over the rows for each drawn feature, against a histogram of all features.
    const double share = params_.colsample_bylevel * params_.colsample_bynode - 0.1;
    const auto rows = static_cast<double>(codes_.n_rows);
    const auto all = static_cast<double>(small_rows_);
    small_rows_ = static_cast<std::size_t>(share > 0 ? std::min(4 * all / share, rows) : rows);
  }
  if (absolute_) small_rows_ = codes_.n_rows;  // histograms would not help
}

// Subtrees need tables without sparse columns, and trees without constraints between nodes; they
// pay unless the limit of leaves would remove most of them.
std::size_t MemoryRows::subtree_rows(int n_threads) const {
  if (sorted_ != nullptr || absolute_ || codes_.sparse.size() > 0 || !params_.monotone.empty() ||
      !params_.interactions.empty())
    return 0;
  constexpr std::size_t rows_per_leaf = 8;
  if (params_.max_leaves < static_cast<std::int64_t>(rows_.rows().n / rows_per_leaf)) return 0;
  if (params_.subtree_rows != TreeParams::automatic) return params_.subtree_rows;
  // A histogram covers all features of the tree, a subtree reads only those drawn for each node:
  // with few drawn features and several sums a slot, no histogram pays.
  const double share = std::max(params_.colsample_bylevel * params_.colsample_bynode,
                                1.0 / static_cast<double>(codes_.n_features));
  const bool reads_little = policy_.channels() > 1 || params_.random_cuts;
  if (reads_little && share < 0.25) return n_threads == 1 ? rows_.rows().n : shared_node_rows;
  const double worth = static_cast<double>(small_rows_) / share;
  return std::max(small_rows_, static_cast<std::size_t>(std::min(worth, 4096.0)));
}

TreeScale MemoryRows::start_tree(const Gradients& gradients, std::size_t output,
                                 const TreeRequest& request, Team& team) {
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  const bool is_tolerant = request.part.tolerance > 1;
  rows_.prepare(gradients, output, request.sample, static_cast<std::uint32_t>(bits), !is_tolerant,
                team);
  sizes_.start_tree(rows_, alone_, team);
  const Counting counting = sizes_.counting();
  rows_.count_rows(counting != Counting::none);
  histograms_.use_channels(policy_.width() + (counting == Counting::always ? 1 : 0));
  rows_.check_targets(params_.criterion);
  if (absolute_) absolute_->start_tree(rows_.rows(), rows_.pairs(), team);
  if (purity_) purity_->start_tree(gradients, output, policy_.width(), request.part.tolerance);
  values_tell_purity_ = purity_ && !is_tolerant && rows_.values_are_exact(gradients, output);
  TreeScale scale = rows_.scale();
  if (counting == Counting::none) scale.least_h = sizes_.least_h();
  return scale;
}

void MemoryRows::grow(TreePolicy& policy, Team& team) {
  search_.start_tree(team.size());
  if (sorted_)
    sorted_->start_tree(rows_.rows(), policy.columns().of_tree(), team);
  else if (policy.columns().samples_trees())
    histograms_.use_features(policy.columns().of_tree());
  subtrees_.start_tree(subtree_rows(team.size()), values_tell_purity_, team.size());
  failed_ = false;
  histograms_.release_all();  // of a tree that was interrupted
  start_root(team);
  team.for_chunks(0, static_cast<std::size_t>(team.size()), 1,
                  [&](std::size_t, std::size_t, int member) { work(member, team); });
  histograms_.release_all();
}

void MemoryRows::start_root(Team& team) {
  GrowNode& root = policy_.open_root(rows_.rows().n, subtrees_.most_rows() > 0);
  const std::size_t channels = policy_.channels();
  const auto add_rows = [&] {
    constexpr std::size_t chunk = 512;
    std::vector<std::int64_t> values(chunk * channels);
    for (std::size_t first = 0; first < root.n_rows(); first += chunk) {
      const std::size_t n = std::min(chunk, root.n_rows() - first);
      rows_.read_values(rows_.elements(root) + first, n, values.data());
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < channels; ++c) root.sums[c] += values[i * channels + c];
    }
  };
  if (sorted_ || absolute_ || root.n_rows() <= subtrees_.most_rows()) {
    add_rows();
  } else {
    root.histogram = histograms_.build(codes_, rows_, root, 0, team);
    if (histograms_.slots().n_stores == 0)
      add_rows();
    else {
      // Every row is in exactly one slot of any stored column.
      const std::size_t s = histograms_.slots().store(0);
      const std::size_t first = histograms_.slots().first[s], in_slot = histograms_.channels();
      for (std::size_t slot = 0; slot < codes_.first_slot[s + 1] - codes_.first_slot[s]; ++slot)
        for (std::size_t c = 0; c < policy_.width(); ++c)
          root.sums[c] += root.histogram[(first + slot) * in_slot + c];
      if (channels > policy_.width()) root.sums.back() = static_cast<std::int64_t>(root.n_rows());
    }
  }
  if (!subtrees_.grow_if_small(root, 0, failed_, team) && may_split(root))
    search_.find(root, 0, team);
  policy_.add_root();
}

// Worker loop of every thread until the tree is done. A thread that throws, or is interrupted while
// it waits, stops the others.
void MemoryRows::work(int member, Team& team) {
  try {
    while (GrowNode* node = next_node(member, team)) {
      {
        const Expanding expanding(n_expanding_);
        const std::size_t n_left = rows_.split(*node, member, team);
        policy_.make_children(*node, n_left, n_left);
        find_splits(*node, member, team);
      }
      policy_.report(*node, [this](GrowNode& leaf) { forget_histogram(leaf); });
      team.notify();
    }
  } catch (...) {
    failed_ = true;
    team.notify();
    throw;
  }
}

GrowNode* MemoryRows::next_node(int member, Team& team) {
  TreePolicy::Next next{};
  team.help_until(member, [&] {
    if (failed_) return true;
    const std::size_t n_others = n_expanding_;
    const auto n_members = static_cast<std::size_t>(team.size());
    if (n_others > 0 && !histograms_.has_room_for_node(n_others, n_members))
      return policy_.is_finished();  // helps with the loops of the others
    next = policy_.take();
    return next.is_finished || next.node != nullptr;
  });
  return next.node;
}

// Finds the children's best splits. Only the smaller child's rows are read: the larger child's
// histogram is the parent's minus the smaller child's, computed in place.
void MemoryRows::find_splits(GrowNode& node, int member, Team& team) {
  if (sorted_ != nullptr) return find_splits_sorted(node, member, team);
  const bool left_smaller = node.left->n_rows() <= node.right->n_rows();
  GrowNode& smaller = left_smaller ? *node.left : *node.right;
  GrowNode& larger = left_smaller ? *node.right : *node.left;
  const bool search_smaller =
      !subtrees_.grow_if_small(smaller, member, failed_, team) && may_split(smaller);
  const bool search_larger =
      !subtrees_.grow_if_small(larger, member, failed_, team) && may_split(larger);
  std::int64_t* parent = node.histogram;
  node.histogram = nullptr;
  if (search_larger && !is_small(larger)) {
    if (parent == nullptr) {
      larger.histogram = histograms_.build(codes_, rows_, larger, member, team);
    } else if (is_small(smaller) || smaller.subtree_of >= 0) {
      grow_kernels().accumulate(codes_.row_codes(), histograms_.slots(), histograms_.sums_of(rows_),
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
  if (search_smaller) search_.find(smaller, member, team);
  if (search_larger) search_.find(larger, member, team);
  if (larger.histogram != parent) histograms_.release(parent);
  for (GrowNode* child : {node.left, node.right})
    if (child->gain < 0 || histograms_.scarce()) forget_histogram(*child);
}

// Leaves need no sorted rows.
void MemoryRows::find_splits_sorted(GrowNode& node, int member, Team& team) {
  const bool search_left = may_split(*node.left), search_right = may_split(*node.right);
  if (search_left || search_right) sorted_->split(node, rows_, member, team);
  if (search_left) search_.find(*node.left, member, team);
  if (search_right) search_.find(*node.right, member, team);
}

void MemoryRows::forget_histogram(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

}  // namespace arboost
