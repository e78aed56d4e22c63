// A small node -> its whole subtree, depth first, on one thread. The same searches, draws and rules
// as for other nodes, so the same splits.
#include "grow/subtree.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/random.h"
#include "grow/grower.h"

namespace arboost {
namespace {

// True if all rows have the same ratio g / h: no split has a gain then, because the scores H^2 / (H
// + lambda) of two sides never sum to more than that of the node.
bool agree(const std::int64_t* values, std::size_t n, std::size_t outputs, std::size_t channels) {
  for (std::size_t i = 1; i < n; ++i)
    for (std::size_t k = 0; k < outputs; ++k) {
      const std::int64_t one = values[k], other = values[i * channels + k];
      if (sum_h(one) == 0 ||
          std::int64_t{sum_g(one)} * sum_h(other) != std::int64_t{sum_g(other)} * sum_h(one))
        return false;
    }
  return true;
}

// True if the ratio g / h of some row differs from the first row's by more than the rounding of
// both: at most 1 and 2^-16 of a unit in each number, less than 2^15 units where it is above 1.
// Then Purity finds the node impure, too.
bool differ(const std::int64_t* values, std::size_t n, std::size_t outputs, std::size_t channels) {
  for (std::size_t i = 1; i < n; ++i)
    for (std::size_t k = 0; k < outputs; ++k) {
      const std::int64_t one = values[k], other = values[i * channels + k];
      const std::int64_t g = sum_g(one), h = sum_h(one), g2 = sum_g(other), h2 = sum_h(other);
      if (std::abs(g * h2 - g2 * h) > std::abs(g) + h + std::abs(g2) + h2 + 8) return true;
    }
  return false;
}

// Stable partition: left in place, right via `spare` behind the left.
template <class GoesLeft>
std::size_t partition_in_place(Element* elements, std::size_t n, Element* ARBOOST_RESTRICT spare,
                               GoesLeft goes_left) {
  std::size_t n_left = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Element e = elements[i];
    elements[n_left] = e;
    spare[i - n_left] = e;
    n_left += goes_left(i, row_of(e)) ? 1 : 0;
  }
  std::memcpy(elements + n_left, spare, (n - n_left) * sizeof(Element));
  return n_left;
}

template <class CodeOf>
std::size_t partition_by(const SplitRule& rule, CodeOf code_of, Element* elements, std::size_t n,
                         Element* spare) {
  if (rule.by_set)
    return partition_in_place(elements, n, spare, [&](std::size_t i, RowId row) {
      return holds(rule.left, code_of(i, row));
    });
  const std::uint32_t bin = rule.bin, missing_left = rule.missing_left;
  return partition_in_place(elements, n, spare, [&](std::size_t i, RowId row) {
    const std::uint32_t c = code_of(i, row);
    return (c <= bin) | (c == missing_left);
  });
}

// `table`: the feature's codes by stored ones, or null.
template <class Code>
std::size_t partition_rows(const Codes& codes, std::size_t feature, const std::uint8_t* table,
                           const SplitRule& rule, std::span<Element> elements, Element* spare) {
  // Row-major codes of few rows are still in the cache; for many rows, columns are denser.
  constexpr std::size_t few = 512;
  const std::size_t n = elements.size(), store = codes.where[feature].store;
  const Code* first = n <= few ? codes.row<Code>(0) + store : codes.column<Code>(store);
  const std::size_t stride = n <= few ? codes.row_stride / sizeof(Code) : 1;
  if (table != nullptr)
    return partition_by(
        rule, [=](std::size_t, RowId row) -> std::uint32_t { return table[first[row * stride]]; },
        elements.data(), n, spare);
  return partition_by(
      rule, [=](std::size_t, RowId row) -> std::uint32_t { return first[row * stride]; },
      elements.data(), n, spare);
}

}  // namespace

void Grower::set_tables() {
  constexpr std::size_t n_codes = 256;
  std::size_t n_shared = 0;
  for (const Place& place : codes_.where) n_shared += place.storage == Storage::shared ? 1 : 0;
  if (n_shared == 0) return;
  decoded_.reserve(n_shared * n_codes);
  for (std::size_t f = 0; f < codes_.n_features; ++f) {
    const bool is_shared = codes_.where[f].storage == Storage::shared;
    tables_.push_back(is_shared ? decoded_.data() + decoded_.size() : nullptr);
    for (std::uint32_t code = 0; is_shared && code < n_codes; ++code)
      decoded_.push_back(static_cast<std::uint8_t>(codes_.decode(f, code)));
  }
}

FewRows Grower::few_rows(const Element* elements, std::size_t n, const std::int64_t* totals,
                         const Scratch& own) const {
  return {&codes_, tables_.empty() ? nullptr : tables_.data(), elements, own.values.data(), n,
          totals};
}

// Subtrees need tables without sparse columns, and trees without constraints between nodes; they
// pay unless the limit of leaves would remove most of them.
std::size_t Grower::subtree_rows(int n_threads) const {
  if (sorted_ != nullptr || absolute_ || codes_.sparse.size() > 0 || gain_.bounded ||
      !params_.interactions.empty())
    return 0;
  constexpr std::size_t rows_per_leaf = 8;
  if (params_.max_leaves < static_cast<std::int64_t>(rows_.rows().n / rows_per_leaf)) return 0;
  if (params_.subtree_rows != TreeParams::automatic) return params_.subtree_rows;
  // A histogram covers all features of the tree, a subtree reads only those drawn for each node:
  // with few drawn features and several sums a slot, no histogram pays.
  const double share = std::max(params_.colsample_bylevel * params_.colsample_bynode,
                                1.0 / static_cast<double>(codes_.n_features));
  const bool reads_little = channels_ > 1 || params_.random_cuts;
  if (reads_little && share < 0.25) return n_threads == 1 ? rows_.rows().n : shared_node_rows;
  const double worth = static_cast<double>(small_rows_) / share;
  return std::max(small_rows_, static_cast<std::size_t>(std::min(worth, 4096.0)));
}

// False, without effect, if some row has zero weight: only the general search handles such rows.
bool Grower::grow_subtree(GrowNode& root, int member) {
  static_assert(few_candidates <= most_candidates);
  Scratch& own = *scratch_[static_cast<std::size_t>(member)];
  Subtrees& trees = own.subtrees;
  if (rows_.any_empty(root)) return false;
  root.subtree_of = member;
  root.subtree = trees.nodes.size();
  trees.spare.resize(std::max(trees.spare.size(), root.n_rows()));
  trees.sums.resize(channels_);
  trees.left_sums.resize(channels_);
  trees.nodes.push_back({.begin = static_cast<std::uint32_t>(root.begin),
                         .end = static_cast<std::uint32_t>(root.end)});
  open_in_subtree(trees, root.subtree, root.depth, root.path, root.sums.data());
  while (!trees.open.empty()) {
    const Subtrees::Open at = trees.open.back();
    trees.open.pop_back();
    const std::int64_t* sums = trees.open_sums.data() + trees.open.size() * channels_;
    std::copy(sums, sums + channels_, trees.sums.data());
    if (search_in_subtree(own, at, root.buffer)) split_in_subtree(own, at, root.buffer);
  }
  return true;
}

// Pushes a node to the open nodes, if it may be split.
void Grower::open_in_subtree(Subtrees& trees, std::size_t number, std::int64_t depth,
                             std::uint64_t path, const std::int64_t* sums) {
  const SubtreeNode& node = trees.nodes[number];
  if (!may_split(depth, node.end - node.begin, sums)) return;
  const std::size_t at = trees.open.size();
  trees.open.push_back({static_cast<std::uint32_t>(number), depth, path});
  if (trees.open_sums.size() < (at + 1) * channels_) trees.open_sums.resize((at + 1) * channels_);
  std::copy(sums, sums + channels_, trees.open_sums.data() + at * channels_);
}

// True if the node is pure. Trees that split only for gain use a weaker test.
bool Grower::is_pure(const Element* elements, std::size_t n, const std::int64_t* values) const {
  if (values_tell_purity_ || (!purity_ && is_plain(gain_)))
    return agree(values, n, width_, channels_);
  return purity_ && !differ(values, n, width_, channels_) && purity_->is_pure(elements, n);
}

// The node's best split, and the sums of its left side; false where it stays a leaf.
bool Grower::search_in_subtree(Scratch& own, const Subtrees::Open& at, int buffer) {
  Subtrees& trees = own.subtrees;
  SubtreeNode& node = trees.nodes[at.node];
  const std::size_t n = node.end - node.begin;
  if (own.values.size() < n * channels_ + padded_rows)
    own.values.resize(n * channels_ + padded_rows);
  const Element* elements = space_.elements[buffer].data() + node.begin;
  rows_.read_values(elements, n, own.values.data());
  if (is_pure(elements, n, own.values.data())) return false;
  const double score = node_score(trees.sums.data());
  const auto features = columns_.of_node(at.depth, at.path, own.columns);
  NodeSplit best{.feature = -1, .split = {}, .left_sums = trees.left_sums.data()};
  best.split.score = floor_of(trees.sums.data(), score);
  if (codes_.width == 2 && own.split.keys.size() < n) own.split.keys.resize(n);
  const FewRows rows = few_rows(elements, n, trees.sums.data(), own);
  bool is_done = !params_.allow_zero_gain;
  if (params_.random_cuts)
    is_done = cut_in_subtree(rows, features, at.path, own, best);
  else
    grow_kernels().find_split_few(gain_, rows, {features.data(), features.size()}, own.split, best);
  if (best.feature < 0 && !is_done) search_as_node(own, at, buffer, features, best);
  if (best.feature < 0) return false;
  trees.codes = best.codes;
  FeatureSplit& split = best.split;
  node.feature = best.feature;
  node.gain = std::max(split.score - score, 0.0);
  if (!split.by_set) {
    if (!params_.random_cuts)
      split.bin = middle_bin(static_cast<std::size_t>(best.feature), split.bin, split.next);
    if (!split.missing_seen) split.missing_left = is_heavier(best.left_sums, trees.sums.data());
  }
  node.bin = split.bin;
  node.missing_left = split.missing_left;
  if (split.by_set) {
    node.set = static_cast<std::int32_t>(trees.sets.size());
    trees.sets.push_back(split.left);
  }
  return true;
}

// False if the general search must continue.
bool Grower::cut_in_subtree(const FewRows& rows, std::span<const std::uint32_t> features,
                            std::uint64_t path, Scratch& own, NodeSplit& best) {
  const auto is_category = [this](std::uint32_t f) { return codes_.has_levels(f); };
  if (codes_.width != 1 || std::any_of(features.begin(), features.end(), is_category)) return false;
  std::fill_n(own.values.data() + rows.n * channels_, padded_rows, 0);
  const std::size_t room = cut_group * (rows.n + padded_rows);
  if (own.split.codes.size() < room) own.split.codes.resize(room);
  const CutDraws draws{mix_bits(cut_key_ + path), cut_values_.data()};
  const std::size_t n_varying = grow_kernels().find_cut_few(
      gain_, rows, draws, {features.data(), features.size()}, own.split, best);
  return n_varying > 0 || !params_.allow_zero_gain;
}

// Random thresholds, with features drawn in place of constant ones.
void Grower::search_as_node(Scratch& own, const Subtrees::Open& at, int buffer,
                            std::span<const std::uint32_t> features, NodeSplit& best) {
  const SubtreeNode& node = own.subtrees.nodes[at.node];
  GrowNode& view = own.view;
  view.begin = node.begin;
  view.end = node.end;
  view.buffer = buffer;
  view.depth = at.depth;
  view.path = at.path;
  view.sums = own.subtrees.sums;
  if (own.sums != nullptr) open_sums(view, own);
  own.found.resize(1);
  Found& found = own.found.front();
  found.feature = -1;
  found.split = best.split;
  if (params_.random_cuts) search(view, features, own, own, found);
  if (found.feature < 0 && params_.allow_zero_gain) search_further(view, features, own, found);
  if (found.feature < 0) return;
  best.feature = view.feature = found.feature;
  best.split = view.split = found.split;
  if (!params_.random_cuts && !best.split.by_set) best.split.next = next_code(view, own);
  std::copy(found.left_sums.begin(), found.left_sums.end(), best.left_sums);
}

void Grower::split_in_subtree(Scratch& own, const Subtrees::Open& at, int buffer) {
  Subtrees& trees = own.subtrees;
  const SubtreeNode node = trees.nodes[at.node];
  const auto feature = static_cast<std::size_t>(node.feature);
  const SplitRule rule = own_rule(
      codes_, feature,
      {.bin = node.bin,
       .missing_left = node.missing_left,
       .levels = node.set < 0 ? nullptr : &trees.sets[static_cast<std::size_t>(node.set)]});
  const auto partition =
      codes_.width == 1 ? partition_rows<std::uint8_t> : partition_rows<std::uint16_t>;
  const std::span elements(space_.elements[buffer].data() + node.begin, node.end - node.begin);
  const std::uint8_t* gathered = trees.codes;
  const std::size_t n_left =
      gathered != nullptr
          ? partition_by(
                rule, [=](std::size_t i, RowId) -> std::uint32_t { return gathered[i]; },
                elements.data(), elements.size(), trees.spare.data())
          : partition(codes_, feature, tables_.empty() ? nullptr : tables_[feature], rule, elements,
                      trees.spare.data());
  const std::uint32_t middle = node.begin + static_cast<std::uint32_t>(n_left);
  const std::size_t left = trees.nodes.size();
  trees.nodes[at.node].left = static_cast<std::uint32_t>(left - at.node);
  trees.nodes.push_back({.begin = node.begin, .end = middle});
  trees.nodes.push_back({.begin = middle, .end = node.end});
  for (std::size_t c = 0; c < channels_; ++c) trees.sums[c] -= trees.left_sums[c];
  open_in_subtree(trees, left + 1, at.depth + 1, mix_bits(2 * at.path + 1), trees.sums.data());
  open_in_subtree(trees, left, at.depth + 1, mix_bits(2 * at.path), trees.left_sums.data());
}

}  // namespace arboost
