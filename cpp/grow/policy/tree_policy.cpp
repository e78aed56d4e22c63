// Limits, bounds and order of a tree's nodes. O(log n) a node.
#include "grow/policy/tree_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/random.h"
#include "grow/search/middle_bin.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Rows of mean hessian of a level that a grouped category places by itself
// (docs/developers/target_encoding.md).
constexpr double group_rows = 30;

// The real value of one unit of score. Entropy is in bits, as in scikit-learn.
double score_unit(Criterion criterion, bool two_classes, double g_unit, double h_unit) {
  switch (criterion) {
    case Criterion::quadratic:
      return g_unit / h_unit * g_unit;
    case Criterion::entropy:
    case Criterion::gain_ratio:
      return g_unit / 0.69314718055994530942;
    case Criterion::poisson:
      return g_unit;
    case Criterion::error:
      return two_classes ? g_unit / 2 : g_unit;
    case Criterion::absolute_error:
      break;
  }
  return 1;
}

// Throws std::invalid_argument for parameters that the criterion does not support.
void check_criterion(const TreeParams& p, const Codes& codes) {
  if (p.random_cuts && p.candidates == Candidates::per_node)
    throw std::invalid_argument(
        "random thresholds are drawn between the values of a node: sketches for each node have no "
        "effect on them");
  if (p.criterion == Criterion::quadratic) return;
  const bool has_levels = std::any_of(codes.is_category.begin(), codes.is_category.end(),
                                      [](std::uint8_t is) { return is != 0; });
  if (p.reg_lambda != 0 || p.reg_alpha != 0 || p.max_delta_step != 0 ||
      (has_levels && p.cat_l2 != 0))
    throw std::invalid_argument(
        "reg_lambda, reg_alpha, max_delta_step and cat_l2 must be 0 for this criterion: only "
        "\"quadratic\" knows penalties");
  if (!p.monotone.empty())
    throw std::invalid_argument(
        "monotone constraints need the criterion \"quadratic\": drop them, or use squared_error or "
        "gini");
  if (p.criterion != Criterion::absolute_error) return;
  if (has_levels)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" splits numerical features only, but the table has "
        "categories: "
        "encode them as numbers, or use squared_error");
  if (p.candidates == Candidates::per_node)
    throw std::invalid_argument(
        "the criterion \"absolute_error\" tries all values of a node: sketches for each node have "
        "no effect on it");
}

}  // namespace

TreePolicy::TreePolicy(const Codes& codes, const TreeParams& params, std::size_t width)
    : codes_(codes),
      params_(params),
      width_(width),
      channels_(width),
      columns_(params_, codes.n_features),
      queue_(params.best_first) {
  for (std::size_t f = 0; f < params.monotone.size(); ++f)
    if (params.monotone[f] != 0 && codes.has_levels(f))
      throw std::invalid_argument("a monotone constraint on a category");
  check_criterion(params, codes);
  const auto& ends = params.target_ends;
  if (!ends.empty() && (ends.back() != width || !std::is_sorted(ends.begin(), ends.end())))
    throw std::invalid_argument("the outputs of the targets are not those of the trees");
}

void TreePolicy::start_tree(const TreeRequest& request, std::size_t output,
                            const TreeScale& scale) {
  columns_.start_tree(request.seed, request.number, request.turn);
  cut_key_ = counter_hash(request.seed, Purpose::random_cut, request.number, output);
  scale_ = scale;
  part_ = request.part;
  channels_ = width_ + (scale.counted ? 1 : 0);
  start_gain();
  n_nodes_ = 0;
  tree_.clear();
}

void TreePolicy::start_gain() {
  const double g_unit = scale_.g_unit, h_unit = scale_.h_unit;
  const double min_h = std::ceil(params_.min_child_weight / h_unit);
  const double row_h = scale_.weight / static_cast<double>(scale_.n_rows);
  const bool is_ratio = params_.criterion == Criterion::gain_ratio;
  const bool of_classes =
      is_ratio || params_.criterion == Criterion::entropy || params_.criterion == Criterion::error;
  const bool two_classes = of_classes && width_ == 1;
  score_unit_ = arboost::score_unit(params_.criterion, two_classes, g_unit, h_unit);
  min_gain_ = params_.gamma / score_unit_;
  const double tree_weight = part_.is_whole ? scale_.weight : part_.tree_weight;
  if (params_.min_gain_share > 0)
    min_gain_ = std::max(min_gain_, params_.min_gain_share * tree_weight / score_unit_);
  gain_ = {.reg_lambda = params_.reg_lambda / h_unit,
           .reg_alpha = params_.reg_alpha / g_unit,
           .max_delta_step = params_.max_delta_step / (g_unit / h_unit),
           .min_h = static_cast<std::int32_t>(
               std::clamp(min_h, 1.0, double{std::numeric_limits<std::int32_t>::max()})),
           .min_count = params_.min_samples_leaf,
           .outputs = static_cast<int>(width_),
           .channels = static_cast<int>(channels_),
           .bounded = !params_.monotone.empty(),
           .criterion = is_ratio ? Criterion::entropy : params_.criterion,
           .two_classes = two_classes,
           .target_ends = params_.target_ends.empty() ? nullptr : params_.target_ends.data(),
           .targets = std::max(1, static_cast<int>(params_.target_ends.size())),
           .h_per_g = h_unit / g_unit,
           .cat_smooth = params_.cat_smooth / h_unit,
           .cat_l2 = params_.cat_l2 / h_unit,
           .min_cat_h = params_.min_cat_weight / h_unit,
           .min_group_h = std::max(params_.min_cat_weight, group_rows * row_h) / h_unit,
           .max_cat_to_onehot = params_.max_cat_to_onehot,
           .max_cat_threshold = params_.max_cat_threshold,
           .grouped = &params_.grouped};
  gain_.min_h = std::max(gain_.min_h, scale_.least_h);
}

GrowNode& TreePolicy::open_root(std::size_t n_rows, bool has_subtrees) {
  queue_.reset(has_subtrees ? TreeParams::unlimited : max_leaves() - 1);
  GrowNode& root = new_node(0, n_rows, 0, part_.depth);
  root.id = 0;
  root.path = part_.path;
  root.all_rows = scale_.n_rows;
  root.lower = -infinity;
  root.upper = infinity;
  root.sums.assign(channels_, 0);
  columns_.open_groups(root);
  tree_.push_back(&root);
  return root;
}

void TreePolicy::add_root() {
  queue_.add_to_frontier(tree_.front());
}

TreePolicy::Next TreePolicy::take() {
  std::lock_guard lock(mutex_);
  if (queue_.finished()) return {nullptr, true};
  return {queue_.take(), false};
}

void TreePolicy::take_batch(std::size_t most, std::vector<GrowNode*>& batch) {
  std::lock_guard lock(mutex_);
  queue_.take_batch(most, batch);
}

bool TreePolicy::is_finished() {
  std::lock_guard lock(mutex_);
  return queue_.finished();
}

void TreePolicy::report(GrowNode& node, FunctionRef<void(GrowNode&)> forget) {
  std::lock_guard lock(mutex_);
  node.expanded = true;
  for (GrowNode* child : {node.left, node.right}) queue_.add_ready(child);
  queue_.commit([this](GrowNode* done) { commit(*done); });
  queue_.drop([&forget](GrowNode* leaf) { forget(*leaf); });
}

void TreePolicy::commit(GrowNode& node) {
  node.committed = true;
  for (GrowNode* child : {node.left, node.right}) {
    child->id = static_cast<std::int32_t>(tree_.size());
    tree_.push_back(child);
    queue_.add_to_frontier(child);
  }
}

// Guarded by mutex_ while threads work.
GrowNode& TreePolicy::new_node(std::size_t begin, std::size_t end, int buffer, std::int64_t depth) {
  if (n_nodes_ == nodes_.size()) nodes_.emplace_back();
  GrowNode& node = nodes_[n_nodes_];
  node.number = n_nodes_++;
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

void TreePolicy::open_children(GrowNode& node) {
  {
    std::lock_guard lock(mutex_);
    node.left = &new_node(node.begin, node.end, 1 - node.buffer, node.depth + 1);
    node.right = &new_node(node.begin, node.end, 1 - node.buffer, node.depth + 1);
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

void TreePolicy::place_children(GrowNode& node, std::size_t n_left, std::size_t all_left) const {
  node.left->end = node.right->begin = node.begin + n_left;
  node.left->all_rows = all_left;
  node.right->all_rows = node.all_rows - all_left;
  if (!scale_.counted) return;
  const auto count = static_cast<std::int64_t>(all_left);
  node.left_sums[width_] = node.left->sums[width_] = count;
  node.right->sums[width_] = node.sums[width_] - count;
}

// Below a split on a constrained feature, the midpoint of the two children's steps bounds all steps
// of either side, so that no leaf on the left can violate the order with one on the right.
void TreePolicy::bound_children(GrowNode& node) const {
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

GainParams TreePolicy::gain_of(const GrowNode& node) const {
  GainParams p = gain_;
  p.lower = node.lower;
  p.upper = node.upper;
  return p;
}

bool TreePolicy::may_split(std::int64_t depth, std::size_t n_rows, const std::int64_t* sums) const {
  return depth < params_.max_depth &&
         n_rows >= 2 * static_cast<std::size_t>(params_.min_samples_leaf) &&
         n_rows >= static_cast<std::size_t>(params_.min_samples_split) &&
         sum_of_h(sums, width_) >=
             2 * std::int64_t{gain_.min_h} * static_cast<std::int64_t>(width_);
}

double TreePolicy::node_score(const GrowNode& node) const {
  if (!gain_.bounded) return node_score(node.sums.data());
  const GainParams p = gain_of(node);
  const double g = sum_g(node.sums[0]), h = sum_h(node.sums[0]);
  return score_of_step(p, g, h, bounded_step(p, g, h));
}

double TreePolicy::node_score(const std::int64_t* sums) const {
  return arboost::node_score(gain_, sums, loss_kernels().logarithm);
}

double TreePolicy::floor_of(const std::int64_t* sums, double score) const {
  return score_floor(gain_, sums, score, min_gain_, params_.allow_zero_gain);
}

double TreePolicy::real_gain(double gain) const {
  return score_unit_ * (params_.criterion == Criterion::error ? gain_of_errors(gain) : gain);
}

void TreePolicy::settle(std::int32_t feature, FeatureSplit& split, std::uint32_t next,
                        const std::int64_t* left_sums, const std::int64_t* sums) const {
  if (split.by_set) return;  // a set covers all codes
  const auto f = static_cast<std::size_t>(feature);
  if (!params_.random_cuts)
    split.bin = middle_bin(codes_.edges[f].data(), codes_.n_bins[f], split.bin, next);
  if (!split.missing_seen) split.missing_left = is_heavier(left_sums, sums);
}

}  // namespace arboost
