// A small node -> its whole subtree, depth first, on one thread.
#include "grow/memory/subtrees.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/random.h"

namespace arboost {
namespace {

constexpr std::size_t cells_per_poll = std::size_t{1} << 20;  // about a millisecond

// True if like(a, b) holds for the contributions of the first row and every other one.
template <class Like>
bool all_like_first(const FewRows& rows, std::size_t outputs, Like like) {
  for (std::size_t i = 1; i < rows.n; ++i)
    for (std::size_t k = 0; k < outputs; ++k)
      if (!like(rows.values[k], rows.values[i * rows.value_stride + k])) return false;
  return true;
}

// True if all rows have the same ratio g / h: no split has a gain then, because the scores H^2 / (H
// + lambda) of two sides never sum to more than that of the node.
bool agree(const FewRows& rows, std::size_t outputs) {
  return all_like_first(rows, outputs, [](std::int64_t first_row, std::int64_t other) {
    return sum_h(first_row) != 0 && std::int64_t{sum_g(first_row)} * sum_h(other) ==
                                        std::int64_t{sum_g(other)} * sum_h(first_row);
  });
}

// True if the ratio g / h of some row differs from the first row's by more than the rounding of
// both: at most 1 and 2^-16 of a unit in each number, less than 2^15 units where it is above 1.
// Then Purity finds the node impure, too.
bool differ(const FewRows& rows, std::size_t outputs) {
  return !all_like_first(rows, outputs, [](std::int64_t first_row, std::int64_t other) {
    const std::int64_t g = sum_g(first_row), h = sum_h(first_row), g2 = sum_g(other),
                       h2 = sum_h(other);
    return std::abs(g * h2 - g2 * h) <= std::abs(g) + h + std::abs(g2) + h2 + 8;
  });
}

// Stable partition: left in place, right via `spare` behind the left. `table`: the feature's codes
// by stored ones, or null.
template <class Code>
std::size_t partition_rows(const Codes& codes, std::size_t feature, const std::uint8_t* table,
                           const SplitRule& split_rule, std::span<Element> elements,
                           Element* ARBOOST_RESTRICT spare) {
  // Row-major codes of few rows are still in the cache; for many rows, columns are denser.
  constexpr std::size_t few = 512;
  const std::size_t n = elements.size(), store = codes.where[feature].store;
  const Code* first = n <= few ? codes.row<Code>(0) + store : codes.column<Code>(store);
  const std::size_t stride = n <= few ? codes.row_stride / sizeof(Code) : 1;
  const SplitRule rule = split_rule;  // in registers
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Element e = elements[i];
    const std::uint32_t stored = first[row_of(e) * stride];
    elements[n_left] = e;
    spare[i - n_left] = e;
    const std::uint32_t code = table == nullptr ? stored : table[stored];
    const bool is_left =  // without branches
        rule.by_set ? holds(rule.left, code) : (code <= rule.bin) | (code == rule.missing_left);
    n_left += is_left ? 1 : 0;
  }
  std::memcpy(elements.data() + n_left, spare, (n - n_left) * sizeof(Element));
  return n_left;
}

}  // namespace

Subtrees::Subtrees(const Codes& codes, TreePolicy& policy, SplitSearch& search,
                   const RowPartition& rows, const Purity* purity, Workspace& workspace)
    : codes_(codes),
      policy_(policy),
      params_(policy.params()),
      search_(search),
      rows_(rows),
      layout_(codes, search.tables()),
      purity_(purity),
      space_(workspace),
      width_(policy.width()),
      channels_(policy.channels()) {}

void Subtrees::start_tree(std::size_t most_rows, bool values_tell_purity, int n_members) {
  most_rows_ = most_rows;
  values_tell_purity_ = values_tell_purity;
  channels_ = policy_.channels();
  while (members_.size() < static_cast<std::size_t>(n_members))
    members_.push_back(std::make_unique<Member>());
  grown_.clear();
  for (auto& member : members_) {
    member->trees.nodes.clear();
    member->trees.sets.clear();
    member->open.clear();
    if (most_rows > 0) grown_.push_back(&member->trees);
  }
}

bool Subtrees::grow(GrowNode& root, int member, const std::atomic<bool>& failed, Team& team) {
  if (rows_.any_empty(root)) return false;
  SplitSearch::Scratch& scratch = search_.scratch(member);
  Member& worker = *members_[static_cast<std::size_t>(member)];
  root.subtree_of = member;
  root.subtree = worker.trees.nodes.size();
  worker.spare.resize(std::max(worker.spare.size(), root.n_rows()));
  worker.sums.resize(channels_);
  worker.left_sums.resize(channels_);
  worker.block.close();
  worker.trees.nodes.push_back({.begin = static_cast<std::uint32_t>(root.begin),
                                .end = static_cast<std::uint32_t>(root.end)});
  open(worker, root.subtree, root.depth, root.path, root.sums.data());
  std::size_t cells = 0;  // since the last poll
  while (!worker.open.empty()) {
    const Open at = worker.open.back();
    worker.open.pop_back();
    const SubtreeNode& node = worker.trees.nodes[at.node];
    cells += (node.end - node.begin) * codes_.n_features;
    if (cells > cells_per_poll) {
      if (failed) break;
      team.poll_if_due(member);
      cells = 0;
    }
    const std::int64_t* sums = worker.open_sums.data() + worker.open.size() * channels_;
    std::copy(sums, sums + channels_, worker.sums.data());
    if (find(worker, scratch, at, root.buffer)) split(worker, at, root.buffer);
  }
  return true;
}

// Pushes a node to the open nodes, if it may be split.
void Subtrees::open(Member& worker, std::size_t number, std::int64_t depth, std::uint64_t path,
                    const std::int64_t* sums) {
  const SubtreeNode& node = worker.trees.nodes[number];
  if (!policy_.may_split(depth, node.end - node.begin, sums)) return;
  const std::size_t at = worker.open.size();
  worker.open.push_back({static_cast<std::uint32_t>(number), depth, path});
  if (worker.open_sums.size() < (at + 1) * channels_) worker.open_sums.resize((at + 1) * channels_);
  std::copy(sums, sums + channels_, worker.open_sums.data() + at * channels_);
}

// True if the node is pure. Trees that split only for gain use a weaker test.
bool Subtrees::is_pure(const FewRows& rows) const {
  if (values_tell_purity_ || (purity_ == nullptr && is_plain(policy_.gain())))
    return agree(rows, width_);
  return purity_ != nullptr && (purity_->is_tolerant() || !differ(rows, width_)) &&
         purity_->is_pure(rows.elements, rows.n);
}

// The rows of a node: few enough ones as a block, which serves the whole subtree below.
FewRows Subtrees::rows_of(Member& worker, SplitSearch::Scratch& scratch, const Open& at,
                          int buffer) {
  const SubtreeNode& node = worker.trees.nodes[at.node];
  const std::size_t n = node.end - node.begin;
  const Element* elements = space_.elements[buffer].data() + node.begin;
  if (has_block(n)) {
    if (!worker.block.covers(node.begin, node.end))
      worker.block.open(layout_, rows_, channels_, elements, node.begin, node.end, at.depth,
                        scratch.values);
    const DenseRows dense = worker.block.rows(layout_, node.begin, at.depth);
    return {&codes_,
            search_.tables(),
            elements,
            reinterpret_cast<const std::int64_t*>(dense.first + dense.lanes),
            dense.stride / sizeof(std::int64_t),
            n,
            worker.sums.data(),
            dense};
  }
  if (scratch.values.size() < n * channels_ + padded_rows)
    scratch.values.resize(n * channels_ + padded_rows);
  rows_.read_values(elements, n, scratch.values.data());
  return search_.few_rows(elements, n, worker.sums.data(), scratch);
}

// The node's best split, and the sums of its left side; false where it stays a leaf.
bool Subtrees::find(Member& worker, SplitSearch::Scratch& scratch, const Open& at, int buffer) {
  SubtreeNode& node = worker.trees.nodes[at.node];
  const FewRows rows = rows_of(worker, scratch, at, buffer);
  if (is_pure(rows)) return false;
  const double score = policy_.node_score(worker.sums.data());
  const auto features = policy_.columns().of_node(at.depth, at.path, scratch.columns);
  NodeSplit best{.feature = -1, .split = {}, .left_sums = worker.left_sums.data()};
  best.split.score = policy_.floor_of(worker.sums.data(), score);
  if (codes_.width == 2 && scratch.split.keys.size() < rows.n) scratch.split.keys.resize(rows.n);
  const bool is_ratio = params_.criterion == Criterion::gain_ratio;
  bool is_done = !params_.allow_zero_gain;
  if (is_ratio)
    search_as_node(worker, scratch, at, buffer, features, score, best);
  else if (params_.random_cuts)
    is_done = cut(rows, features, at.path, scratch, best);
  else
    grow_kernels().find_split_few(policy_.gain(), rows, {features.data(), features.size()},
                                  scratch.split, best);
  if (best.feature < 0 && !is_done && !is_ratio)
    search_as_node(worker, scratch, at, buffer, features, score, best);
  if (best.feature < 0) return false;
  FeatureSplit& split = best.split;
  node.feature = best.feature;
  node.gain = std::max(split.score - score, 0.0);
  policy_.settle(best.feature, split, split.next, best.left_sums, worker.sums.data());
  node.bin = split.bin;
  node.missing_left = split.missing_left;
  if (split.by_set) {
    node.set = static_cast<std::int32_t>(worker.trees.sets.size());
    worker.trees.sets.push_back(split.left);
  }
  return true;
}

// False if the general search must continue.
bool Subtrees::cut(const FewRows& rows, std::span<const std::uint32_t> features, std::uint64_t path,
                   SplitSearch::Scratch& scratch, NodeSplit& best) {
  const auto is_category = [this](std::uint32_t f) { return codes_.has_levels(f); };
  if (codes_.width != 1 || std::any_of(features.begin(), features.end(), is_category)) return false;
  if (!rows.is_dense()) {
    std::fill_n(scratch.values.data() + rows.n * channels_, padded_rows, 0);
    const std::size_t n_codes = cut_group * (rows.n + padded_rows);
    if (scratch.split.codes.size() < n_codes) scratch.split.codes.resize(n_codes);
  }
  const std::size_t n_varying =
      grow_kernels().find_cut_few(policy_.gain(), rows, search_.draws(path),
                                  {features.data(), features.size()}, scratch.split, best);
  return n_varying > 0 || !params_.allow_zero_gain;
}

// Gain ratios, and random thresholds, with features drawn in place of constant ones.
void Subtrees::search_as_node(Member& worker, SplitSearch::Scratch& scratch, const Open& at,
                              int buffer, std::span<const std::uint32_t> features, double score,
                              NodeSplit& best) {
  const SubtreeNode& node = worker.trees.nodes[at.node];
  GrowNode& view = worker.view;
  view.begin = node.begin;
  view.end = node.end;
  view.buffer = buffer;
  view.depth = at.depth;
  view.path = at.path;
  view.sums = worker.sums;
  search_.open_sums(view, scratch);
  scratch.best_of_chunks.resize(1);
  SplitSearch::FeatureBest& search_best = scratch.best_of_chunks.front();
  search_best.feature = -1;
  search_best.split = best.split;
  if (params_.criterion == Criterion::gain_ratio)
    search_.search_ratio(
        view, features, true, score, scratch,
        [&](SplitSearch::SearchChunk search_chunk) { search_chunk(0, features.size(), scratch); },
        search_best);
  else if (params_.random_cuts)
    search_.search(view, features, true, scratch, scratch, search_best);
  if (search_best.feature < 0 && params_.allow_zero_gain)
    search_.search_further(view, features, scratch, search_best);
  if (search_best.feature < 0) return;
  best.feature = view.feature = search_best.feature;
  best.split = view.split = search_best.split;
  if (!params_.random_cuts && !best.split.by_set)
    best.split.next = search_.next_code(view, scratch);
  std::copy(search_best.left_sums.begin(), search_best.left_sums.end(), best.left_sums);
}

void Subtrees::split(Member& worker, const Open& at, int buffer) {
  std::vector<SubtreeNode>& nodes = worker.trees.nodes;
  const SubtreeNode node = nodes[at.node];
  const auto feature = static_cast<std::size_t>(node.feature);
  const SplitRule rule = own_rule(
      codes_, feature,
      {.bin = node.bin,
       .missing_left = node.missing_left,
       .levels = node.set < 0 ? nullptr : &worker.trees.sets[static_cast<std::size_t>(node.set)]});
  const auto partition =
      codes_.width == 1 ? partition_rows<std::uint8_t> : partition_rows<std::uint16_t>;
  const std::span elements(space_.elements[buffer].data() + node.begin, node.end - node.begin);
  const std::size_t n_left =
      has_block(elements.size())
          ? worker.block.split(layout_, feature, rule, node.begin, node.end, at.depth,
                               elements.data())
          : partition(codes_, feature, search_.table(feature), rule, elements, worker.spare.data());
  const std::uint32_t middle = node.begin + static_cast<std::uint32_t>(n_left);
  const std::size_t left = nodes.size();
  nodes[at.node].left = static_cast<std::uint32_t>(left - at.node);
  nodes.push_back({.begin = node.begin, .end = middle});
  nodes.push_back({.begin = middle, .end = node.end});
  for (std::size_t c = 0; c < channels_; ++c) worker.sums[c] -= worker.left_sums[c];
  open(worker, left + 1, at.depth + 1, mix_bits(2 * at.path + 1), worker.sums.data());
  open(worker, left, at.depth + 1, mix_bits(2 * at.path), worker.left_sums.data());
}

}  // namespace arboost
