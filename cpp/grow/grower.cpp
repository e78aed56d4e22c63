// The growth loop; grow/finish.cpp turns what it leaves into a tree.
#include "grow/grower.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "random.h"

namespace arboost {
namespace {

// A gain below this part of the node's own score is rounding of doubles, not information.
constexpr double least_relative_gain = 1e-10;

constexpr double infinity = std::numeric_limits<double>::infinity();

// Histogram slots that one thread searches for splits before it is worth asking others.
constexpr std::size_t slots_per_search = 65536;

}  // namespace

Grower::Grower(const Codes& codes, std::span<const RowId> table_rows, const TreeParams& params,
               std::size_t width)
    : codes_(codes),
      params_(params),
      width_(width),
      channels_(width + (params.min_samples_leaf > 1 ? 1 : 0)),
      rows_(codes, table_rows, width, params.min_samples_leaf > 1),
      histograms_(codes, channels_, params.histogram_bytes),
      columns_(params_, codes.n_features),
      leaf_of_row_(codes.n_rows),
      queue_(params.best_first) {
  // Below this a walk over all bins of a histogram costs more than the rows themselves.
  small_rows_ = histograms_.slots().n_slots / std::max<std::size_t>(1, codes.n_features) / 4;
  small_rows_ = std::min<std::size_t>(small_rows_, 512);
}

void Grower::grow(const Gradients& gradients, std::size_t output, const Sample* sample,
                  TreeSeed seed, double rate, GrownTrees& forest, Team& team) {
  start_tree(gradients, output, sample, seed, team);
  team.for_chunks(0, static_cast<std::size_t>(team.size()), 1,
                  [&](std::size_t, std::size_t, int member) { work(member, team); });
  histograms_.release_all();
  finish_tree(rate, forest, team);
}

void Grower::start_tree(const Gradients& gradients, std::size_t output, const Sample* sample,
                        TreeSeed seed, Team& team) {
  while (scratch_.size() < static_cast<std::size_t>(team.size()))
    scratch_.push_back(std::make_unique<Scratch>(histograms_.max_bins(), channels_));
  const auto bits = counter_hash(seed.seed, Purpose::gradient_rounding, seed.tree, output);
  rows_.prepare(gradients, output, sample, static_cast<std::uint32_t>(bits), team);
  columns_.start_tree(seed.seed, seed.tree);
  if (columns_.samples_trees()) histograms_.use_features(columns_.of_tree());
  start_gain();
  failed_ = false;
  histograms_.release_all();  // of a tree that was interrupted
  n_nodes_ = 0;
  tree_.clear();
  queue_.reset(params_.max_leaves - 1);
  start_root(team);
}

void Grower::start_gain() {
  const double g_unit = rows_.g_scale(), h_unit = rows_.h_scale();
  const double min_h = std::ceil(params_.min_child_weight / h_unit);
  score_unit_ = g_unit / h_unit * g_unit;
  gain_ = {.reg_lambda = params_.reg_lambda / h_unit,
           .reg_alpha = params_.reg_alpha / g_unit,
           .max_delta_step = params_.max_delta_step / (g_unit / h_unit),
           .min_h = static_cast<std::int32_t>(
               std::clamp(min_h, 1.0, double{std::numeric_limits<std::int32_t>::max()})),
           .min_count = params_.min_samples_leaf,
           .outputs = static_cast<int>(width_),
           .channels = static_cast<int>(channels_),
           .bounded = !params_.monotone.empty()};
}

void Grower::start_root(Team& team) {
  GrowNode& root = new_node(0, rows_.rows().n, 0, 0);
  root.id = 0;
  root.path = 1;
  root.lower = -infinity;
  root.upper = infinity;
  columns_.open_groups(root);
  tree_.push_back(&root);
  root.histogram = histograms_.build(codes_, rows_, root, 0, team);
  // Every row is in exactly one slot of any feature.
  root.sums.assign(channels_, 0);
  const std::size_t f = columns_.of_tree().front();
  const std::size_t first = histograms_.slots().first[f];
  for (std::size_t slot = 0; slot < codes_.first_slot[f + 1] - codes_.first_slot[f]; ++slot)
    for (std::size_t c = 0; c < channels_; ++c)
      root.sums[c] += root.histogram[(first + slot) * channels_ + c];
  if (may_split(root)) evaluate(root, 0, team);
  queue_.add_to_frontier(&root);
}

// Every thread of the team runs this until the tree is done. A thread that fails, or is told to
// stop while it waits, stops the others.
void Grower::work(int member, Team& team) {
  try {
    while (GrowNode* node = next_node(member, team)) {
      expand(*node, member, team);
      {
        std::lock_guard lock(mutex_);
        node->expanded = true;
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
    node = queue_.take();
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

// Below a split on a constrained feature, all steps of one side stay on their side of the middle
// between the two children's: then no leaf on the left can pass one on the right.
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

GainParams Grower::gain_of(const GrowNode& node) const {
  GainParams p = gain_;
  p.lower = node.lower;
  p.upper = node.upper;
  return p;
}

// Finds the children's best splits. Only the smaller child's rows are read: the larger child's sums
// are the parent's less the smaller one's, in the parent's own memory.
void Grower::evaluate_children(GrowNode& node, int member, Team& team) {
  const bool left_smaller = node.left->n_rows() <= node.right->n_rows();
  GrowNode& smaller = left_smaller ? *node.left : *node.right;
  GrowNode& larger = left_smaller ? *node.right : *node.left;
  const bool search_smaller = may_split(smaller), search_larger = may_split(larger);
  std::int64_t* parent = node.histogram;
  node.histogram = nullptr;
  if (search_larger && !is_small(larger)) {
    if (parent == nullptr) {
      larger.histogram = histograms_.build(codes_, rows_, larger, member, team);
    } else if (is_small(smaller)) {
      kernels().accumulate(codes_, histograms_.slots(), rows_.sums(), rows_.elements(smaller),
                           smaller.n_rows(), true, parent);
      larger.histogram = parent;
    } else {
      smaller.histogram = histograms_.build(codes_, rows_, smaller, member, team);
      kernels().subtract(parent, smaller.histogram, histograms_.size());
      larger.histogram = parent;
    }
  }
  if (search_smaller && !is_small(smaller) && smaller.histogram == nullptr)
    smaller.histogram = histograms_.build(codes_, rows_, smaller, member, team);
  if (search_smaller) evaluate(smaller, member, team);
  if (search_larger) evaluate(larger, member, team);
  if (larger.histogram != parent) histograms_.release(parent);
  for (GrowNode* child : {node.left, node.right})
    if (child->gain <= 0 || histograms_.scarce()) forget_histogram(*child);
}

void Grower::forget_histogram(GrowNode& node) {
  histograms_.release(node.histogram);
  node.histogram = nullptr;
}

bool Grower::may_split(const GrowNode& node) const {
  std::int64_t h = 0;
  for (std::size_t k = 0; k < width_; ++k) h += sum_h(node.sums[k]);
  return node.depth < params_.max_depth &&
         node.n_rows() >= 2 * static_cast<std::size_t>(params_.min_samples_leaf) &&
         h >= 2 * std::int64_t{gain_.min_h} * static_cast<std::int64_t>(width_);
}

double Grower::node_score(const GrowNode& node) const {
  if (gain_.bounded) {
    const GainParams p = gain_of(node);
    const double g = sum_g(node.sums[0]), h = sum_h(node.sums[0]);
    return score_of_step(p, g, h, bounded_step(p, g, h));
  }
  const bool plain = is_plain(gain_);
  double score = 0;
  for (std::size_t k = 0; k < width_; ++k) {
    const double g = sum_g(node.sums[k]), h = sum_h(node.sums[k]);
    score += plain ? side_score<true>(gain_, g, h) : side_score<false>(gain_, g, h);
  }
  return score;
}

// The node's best split over all features: the highest gain, then the lowest feature.
void Grower::evaluate(GrowNode& node, int member, Team& team) {
  Scratch& own = *scratch_[static_cast<std::size_t>(member)];
  const std::int64_t* values = nullptr;
  if (node.histogram == nullptr) {
    own.values.resize(node.n_rows() * channels_);
    rows_.read_values(node, own.values.data());
    values = own.values.data();
  }
  const double score = node_score(node);
  // A bounded node's score can be negative: its bounds may force a step that costs.
  const double floor =
      score + std::max(params_.gamma / score_unit_, least_relative_gain * std::abs(score));
  const auto features = columns_.of_node(node, own.features);
  const std::size_t slots =
      std::max<std::size_t>(1, histograms_.slots().n_slots / histograms_.slots().n_features);
  const std::size_t grain = std::max<std::size_t>(1, slots_per_search / slots);
  if (features.empty()) return;
  own.found.resize((features.size() + grain - 1) / grain);
  team.for_chunks(member, features.size(), grain,
                  [&](std::size_t first, std::size_t last, int who) {
                    Found& found = own.found[first / grain];
                    found.feature = -1;
                    found.split.score = floor;
                    search(node, features.subspan(first, last - first), values,
                           *scratch_[static_cast<std::size_t>(who)], found);
                  });
  const auto best = std::max_element(own.found.begin(), own.found.end(), [](auto& a, auto& b) {
    return a.split.score < b.split.score;  // of equals the first
  });
  if (best->feature < 0) return;
  node.gain = best->split.score - score;
  node.feature = best->feature;
  node.split = best->split;
  node.left_sums = best->left_sums;
  if (node.split.missing_seen) return;
  // No missing value here to learn a direction from: follow the heavier child.
  std::int64_t left_h = 0, h = 0;
  for (std::size_t k = 0; k < width_; ++k) {
    left_h += sum_h(node.left_sums[k]);
    h += sum_h(node.sums[k]);
  }
  node.split.missing_left = 2 * left_h >= h;
}

void Grower::search(const GrowNode& node, std::span<const std::uint32_t> features,
                    const std::int64_t* values, Scratch& scratch, Found& best) const {
  const Kernels& k = kernels();
  const Slots& slots = histograms_.slots();
  if (values != nullptr) scratch.split.keys.resize(node.n_rows());
  GainParams p = gain_of(node);
  for (const std::uint32_t f : features) {
    if (p.bounded) p.direction = params_.monotone[f];
    const FeatureSplit split =
        values != nullptr
            ? k.find_split_small(p, codes_, f, rows_.elements(node), values, node.n_rows(),
                                 node.sums.data(), best.split.score, scratch.split)
            : k.find_split(p, node.histogram + slots.first[f] * channels_, codes_.n_bins[f],
                           codes_.has_missing[f] != 0, node.sums.data(), best.split.score,
                           scratch.split);
    if (split.found) {
      best.split = split;
      best.feature = static_cast<std::int32_t>(f);
      best.left_sums = scratch.split.left;
    }
  }
}

}  // namespace arboost
