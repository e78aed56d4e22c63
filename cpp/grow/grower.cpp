// The growth loop; grow/finish.cpp turns its nodes into a tree.
#include "grow/grower.h"

#include <algorithm>
#include <bit>  // bit_width
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/random.h"

namespace arboost {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The real value of one unit of score. Entropy is in bits, as in scikit-learn.
double score_unit(Criterion criterion, double g_unit, double h_unit) {
  switch (criterion) {
    case Criterion::quadratic:
      return g_unit / h_unit * g_unit;
    case Criterion::entropy:
      return g_unit / 0.69314718055994530942;
    case Criterion::poisson:
      return g_unit;
    case Criterion::absolute_error:
      break;
  }
  return 1;
}

}  // namespace

Grower::Grower(const Codes& codes, std::span<const RowId> table_rows, const TreeParams& params,
               std::size_t width, Workspace& workspace)
    : Grower(codes, nullptr, table_rows, params, width, workspace) {
  if (params.candidates != Candidates::bins || codes.width > 2)
    throw std::invalid_argument(
        "binned codes need the candidates \"bins\", and ranks other candidates");
}

Grower::Grower(const Ranks& ranks, std::span<const RowId> table_rows, const TreeParams& params,
               std::size_t width, Workspace& workspace)
    : Grower(ranks, &ranks, table_rows, params, width, workspace) {
  if (params.candidates == Candidates::bins)
    throw std::invalid_argument(
        "binned codes need the candidates \"bins\", and ranks other candidates");
  if (!proposal_) sorted_ = std::make_unique<SortedColumns>(ranks, rows_.n_training());
}

Grower::Grower(const Codes& codes, const Ranks* ranks, std::span<const RowId> table_rows,
               const TreeParams& params, std::size_t width, Workspace& workspace)
    : table_(codes),
      proposal_(ranks != nullptr && params.candidates == Candidates::per_round
                    ? std::make_unique<Proposal>(*ranks, params.sketch_eps)
                    : nullptr),
      codes_(proposal_ ? proposal_->codes() : codes),
      params_(params),
      space_(workspace),
      width_(width),
      channels_(width + (params.min_samples_leaf > 1 ? 1 : 0)),
      rows_(codes_, table_rows, width, params.min_samples_leaf > 1, codes_.width == 4,
            params.sum_bits, workspace),
      histograms_(codes_, channels_, params.histogram_bytes, workspace),
      columns_(params_, codes.n_features),
      queue_(params.best_first) {
  for (std::size_t f = 0; f < params.monotone.size(); ++f)
    if (params.monotone[f] != 0 && codes.has_levels(f))
      throw std::invalid_argument("a monotone constraint on a category");
  check_criterion();
  if (params.criterion == Criterion::absolute_error)
    absolute_ = std::make_unique<AbsoluteRows>(codes_.n_rows, width);
  set_tables();
  if (params.random_cuts) set_cut_values();
  if (params.allow_zero_gain) purity_ = std::make_unique<Purity>(codes_.n_rows, table_rows);
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

void Grower::propose(const Gradients& gradients, Team& team) {
  if (!proposal_) return;
  if (hessians_.size() == 0) {
    hessians_ = Buffer<std::uint32_t>(codes_.n_rows);
    std::fill_n(hessians_.data(), codes_.n_rows, 0u);
  }
  const TreeRows rows = training_rows();
  const auto shift = std::bit_width(gradients.outputs - 1);  // so that the sum of outputs fits
  team.for_chunks(0, rows.n, 65536, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t h = 0;
      for (std::size_t k = 0; k < gradients.outputs; ++k)
        h += gradients.pairs[i * gradients.row_stride() + k * gradients.output_stride()].h;
      hessians_[rows.row(i)] = static_cast<std::uint32_t>(h >> shift);
    }
  });
  proposal_->update({hessians_.data(), hessians_.size()}, team);
}

void Grower::grow(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                  GrownTrees& forest, Team& team) {
  if (proposal_ && !proposal_->is_ready())
    throw std::logic_error("a tree was grown before any candidates were proposed for its round");
  start_tree(gradients, output, request, team);
  team.for_chunks(0, static_cast<std::size_t>(team.size()), 1,
                  [&](std::size_t, std::size_t, int member) { work(member, team); });
  histograms_.release_all();
  finish_tree(gradients, output, request, forest, team);
}

void Grower::start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                        Team& team) {
  while (scratch_.size() < static_cast<std::size_t>(team.size())) {
    const std::size_t room = sorted_ ? sorted_block + 16 : histograms_.max_bins();
    scratch_.push_back(std::make_unique<Scratch>(std::max(room, most_candidates), channels_));
    if (!codes_.is_plain())
      scratch_.back()->sums = std::make_unique<FeatureSums>(codes_, channels_);
  }
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  rows_.prepare(gradients, output, request.sample, static_cast<std::uint32_t>(bits), team);
  check_targets();
  if (absolute_) absolute_->start_tree(rows_.rows(), rows_.pairs(), team);
  make_room(space_.leaf_of_row, table_.n_rows);
  columns_.start_tree(request.seed, request.number, request.turn);
  if (sorted_)
    sorted_->start_tree(rows_.rows(), columns_.of_tree(), team);
  else if (columns_.samples_trees())
    histograms_.use_features(columns_.of_tree());
  start_gain();
  cut_key_ = counter_hash(request.seed, Purpose::random_cut, request.number, output);
  if (purity_) purity_->start_tree(gradients, output, width_);
  values_tell_purity_ = purity_ && rows_.values_are_exact();
  subtree_rows_ = subtree_rows(team.size());
  for (auto& scratch : scratch_) scratch->subtrees.clear();
  failed_ = false;
  histograms_.release_all();  // of a tree that was interrupted
  n_nodes_ = n_expanding_ = 0;
  tree_.clear();
  // With subtrees, order_nodes applies the limit of leaves.
  queue_.reset(subtree_rows_ > 0 ? TreeParams::unlimited : params_.max_leaves - 1);
  start_root(team);
}

void Grower::start_gain() {
  const double g_unit = rows_.g_scale(), h_unit = rows_.h_scale();
  const double min_h = std::ceil(params_.min_child_weight / h_unit);
  score_unit_ = score_unit(params_.criterion, g_unit, h_unit);
  min_gain_ = params_.gamma / score_unit_;
  if (params_.min_gain_share > 0) {
    const TreePairs& pairs = rows_.pairs();
    double weight = 0;
    for (const std::int64_t h : pairs.sum_h)
      weight += std::ldexp(static_cast<double>(h), -pairs.h_exponent) / static_cast<double>(width_);
    min_gain_ = std::max(min_gain_, params_.min_gain_share * weight / score_unit_);
  }
  gain_ = {.reg_lambda = params_.reg_lambda / h_unit,
           .reg_alpha = params_.reg_alpha / g_unit,
           .max_delta_step = params_.max_delta_step / (g_unit / h_unit),
           .min_h = static_cast<std::int32_t>(
               std::clamp(min_h, 1.0, double{std::numeric_limits<std::int32_t>::max()})),
           .min_count = params_.min_samples_leaf,
           .outputs = static_cast<int>(width_),
           .channels = static_cast<int>(channels_),
           .bounded = !params_.monotone.empty(),
           .criterion = params_.criterion,
           .two_classes = params_.criterion == Criterion::entropy && width_ == 1,
           .h_per_g = h_unit / g_unit,
           .cat_smooth = params_.cat_smooth / h_unit,
           .cat_l2 = params_.cat_l2 / h_unit,
           .min_cat_h = params_.min_cat_weight / h_unit,
           .max_cat_to_onehot = params_.max_cat_to_onehot,
           .max_cat_threshold = params_.max_cat_threshold};
}

void Grower::start_root(Team& team) {
  GrowNode& root = new_node(0, rows_.rows().n, 0, 0);
  root.id = 0;
  root.path = 1;
  root.lower = -infinity;
  root.upper = infinity;
  columns_.open_groups(root);
  tree_.push_back(&root);
  root.sums.assign(channels_, 0);
  const auto add_rows = [&] {
    std::vector<std::int64_t> values(root.n_rows() * channels_);
    rows_.read_values(rows_.elements(root), root.n_rows(), values.data());
    for (std::size_t j = 0; j < values.size(); ++j) root.sums[j % channels_] += values[j];
  };
  if (sorted_ || absolute_ || root.n_rows() <= subtree_rows_) {
    add_rows();
  } else {
    root.histogram = histograms_.build(codes_, rows_, root, 0, team);
    if (histograms_.slots().n_stores == 0)
      add_rows();
    else {
      // Every row is in exactly one slot of any stored column.
      const std::size_t s = histograms_.slots().store(0);
      const std::size_t first = histograms_.slots().first[s];
      for (std::size_t slot = 0; slot < codes_.first_slot[s + 1] - codes_.first_slot[s]; ++slot)
        for (std::size_t c = 0; c < channels_; ++c)
          root.sums[c] += root.histogram[(first + slot) * channels_ + c];
    }
  }
  if (!grow_if_small(root, 0) && may_split(root)) evaluate(root, 0, team);
  queue_.add_to_frontier(&root);
}

// Worker loop of every thread until the tree is done. A thread that throws, or is interrupted while
// it waits, stops the others.
void Grower::work(int member, Team& team) {
  try {
    while (GrowNode* node = next_node(member, team)) {
      expand(*node, member, team);
      {
        std::lock_guard lock(mutex_);
        node->expanded = true;
        --n_expanding_;
        for (GrowNode* child : {node->left, node->right}) queue_.add_ready(child);
        queue_.commit([this](GrowNode* done) { commit(*done); });
        queue_.drop([this](GrowNode* leaf) { forget_histogram(*leaf); });
      }
      team.notify();
    }
  } catch (...) {
    failed_ = true;
    team.notify();
    throw;
  }
}

GrowNode* Grower::next_node(int member, Team& team) {
  GrowNode* node = nullptr;
  team.help_until(member, [&] {
    std::lock_guard lock(mutex_);
    if (failed_ || queue_.finished()) return true;
    const auto n_members = static_cast<std::size_t>(team.size());
    if (n_expanding_ > 0 && !histograms_.has_room_for_node(n_expanding_, n_members))
      return false;  // helps with the loops of the others
    node = queue_.take();
    n_expanding_ += node != nullptr ? 1 : 0;
    return node != nullptr;
  });
  return node;
}

void Grower::commit(GrowNode& node) {
  node.committed = true;
  for (GrowNode* child : {node.left, node.right}) {
    child->id = static_cast<std::int32_t>(tree_.size());
    tree_.push_back(child);
    queue_.add_to_frontier(child);
  }
}

// Guarded by mutex_ while threads work.
GrowNode& Grower::new_node(std::size_t begin, std::size_t end, int buffer, std::int64_t depth) {
  if (n_nodes_ == nodes_.size()) nodes_.emplace_back();
  GrowNode& node = nodes_[n_nodes_++];
  node.begin = begin;
  node.end = end;
  node.buffer = buffer;
  node.depth = depth;
  node.id = -1;
  node.gain = -1;
  node.histogram = nullptr;
  node.taken = node.expanded = node.committed = false;
  node.subtree_of = -1;
  return node;
}

void Grower::expand(GrowNode& node, int member, Team& team) {
  make_children(node, rows_.split(node, member, team));
  evaluate_children(node, member, team);
}

void Grower::make_children(GrowNode& node, std::size_t n_left) {
  const std::size_t middle = node.begin + n_left;
  {
    std::lock_guard lock(mutex_);
    node.left = &new_node(node.begin, middle, 1 - node.buffer, node.depth + 1);
    node.right = &new_node(middle, node.end, 1 - node.buffer, node.depth + 1);
  }
  node.left->sums = node.left_sums;
  node.right->sums.resize(channels_);
  for (std::size_t c = 0; c < channels_; ++c)
    node.right->sums[c] = node.sums[c] - node.left_sums[c];
  for (GrowNode* child : {node.left, node.right}) {
    child->path = mix_bits(2 * node.path + (child == node.right ? 1 : 0));
    if (!params_.interactions.empty()) columns_.open_groups(node, *child);
  }
  if (gain_.bounded) bound_children(node);
}

// Below a split on a constrained feature, the midpoint of the two children's steps bounds all steps
// of either side, so that no leaf on the left can violate the order with one on the right.
void Grower::bound_children(GrowNode& node) const {
  for (GrowNode* child : {node.left, node.right}) {
    child->lower = node.lower;
    child->upper = node.upper;
  }
  const int direction = params_.monotone[static_cast<std::size_t>(node.feature)];
  if (direction == 0) return;
  const GainParams p = gain_of(node);
  const auto step = [&](const GrowNode& child) {
    return bounded_step(p, sum_g(child.sums[0]), sum_h(child.sums[0]));
  };
  const double middle = (step(*node.left) + step(*node.right)) / 2;
  GrowNode& low = direction > 0 ? *node.left : *node.right;
  GrowNode& high = direction > 0 ? *node.right : *node.left;
  low.upper = high.lower = middle;
}

void Grower::forget_histogram(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

bool Grower::may_split(std::int64_t depth, std::size_t n_rows, const std::int64_t* sums) const {
  std::int64_t h = 0;
  for (std::size_t k = 0; k < width_; ++k) h += sum_h(sums[k]);
  return depth < params_.max_depth &&
         n_rows >= 2 * static_cast<std::size_t>(params_.min_samples_leaf) &&
         n_rows >= static_cast<std::size_t>(params_.min_samples_split) &&
         h >= 2 * std::int64_t{gain_.min_h} * static_cast<std::int64_t>(width_);
}

}  // namespace arboost
