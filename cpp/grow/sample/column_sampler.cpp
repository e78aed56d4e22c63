// Cost: one hash for each feature and draw. Draws are pure functions of seed, tree, level and node,
// made by any thread.
#include "grow/sample/column_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "grow/kernels/grow_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t few_numbers = 32;  // above, halving is faster than comparing all with all

// The size-th lowest of distinct random numbers; `buffer` is scratch of the same size. A limit
// first filters out most of the numbers: about 2 sqrt(size) more than needed are expected below it.
std::uint64_t nth_lowest(std::span<const std::uint64_t> numbers, std::size_t size,
                         std::uint64_t* buffer) {
  const auto wanted = static_cast<double>(size), all = static_cast<double>(numbers.size());
  const double share = (wanted + 2 * std::sqrt(wanted) + 2) / all;
  const std::uint64_t limit =
      share < 1 ? static_cast<std::uint64_t>(share * 0x1p64) : ~std::uint64_t{0};
  std::size_t n = 0;
  for (const std::uint64_t number : numbers) {
    buffer[n] = number;
    n += number <= limit ? 1 : 0;
  }
  if (n < size)
    n = static_cast<std::size_t>(std::copy(numbers.begin(), numbers.end(), buffer) - buffer);
  if (n <= few_numbers) return grow_kernels().nth_of_few(buffer, n, size - 1);
  std::nth_element(buffer, buffer + (size - 1), buffer + n);
  return buffer[size - 1];
}

// A share of the features, at least one: those of the lowest hashes under a key.
void draw(std::span<const std::uint32_t> from, double rate, std::uint64_t key,
          std::vector<std::uint32_t>& out, std::vector<std::uint64_t>& ranks) {
  out.assign(from.begin(), from.end());
  if (rate >= 1) return;
  const std::size_t size = draw_size(rate, from.size());
  if (from.size() <= few_features &&
      grow_kernels().draw_few(key, from.data(), from.size(), size, out.data()) == size)
    return out.resize(size);
  // Hashes of different features differ, so exactly `size` hashes are at most `last`.
  ranks.resize(2 * from.size());
  grow_kernels().rank_features(key, from.data(), from.size(), ranks.data());
  const std::uint64_t last =
      nth_lowest({ranks.data(), from.size()}, size, ranks.data() + from.size());
  std::size_t kept = 0;
  for (std::size_t j = 0; j < from.size(); ++j) {
    out[kept] = from[j];
    kept += ranks[j] <= last ? 1 : 0;
  }
  out.resize(kept);
}

bool holds(const std::vector<std::uint32_t>& group, std::uint32_t feature) {
  return std::binary_search(group.begin(), group.end(), feature);
}

}  // namespace

ColumnSampler::ColumnSampler(const TreeParams& params, std::size_t n_features)
    : params_(params), n_features_(n_features), tree_(n_features) {
  std::iota(tree_.begin(), tree_.end(), 0u);
}

void ColumnSampler::start_tree(std::uint64_t seed, std::uint64_t tree, std::uint64_t turn_of) {
  seed_ = seed;
  number_ = tree;
  turn_ = turn_of;
  levels_.clear();
  if (samples_trees()) {
    std::vector<std::uint32_t> all(n_features_);
    std::iota(all.begin(), all.end(), 0u);
    std::vector<std::uint64_t> ranks;
    draw(all, params_.colsample_bytree, counter_hash(seed, Purpose::tree_columns, tree, 0), tree_,
         ranks);
  }
  in_turn_ = tree_;
  turn(in_turn_);
}

// Rotates ascending features to begin with the tree's `turn`.
void ColumnSampler::turn(std::vector<std::uint32_t>& features) const {
  const auto first = static_cast<std::uint32_t>(turn_ % n_features_);
  std::rotate(features.begin(), std::lower_bound(features.begin(), features.end(), first),
              features.end());
}

std::span<const std::uint32_t> ColumnSampler::of_level(std::int64_t depth) {
  if (params_.colsample_bylevel >= 1) return tree_;
  std::lock_guard lock(mutex_);
  while (static_cast<std::int64_t>(levels_.size()) <= depth) {
    const std::uint64_t key = counter_hash(seed_, Purpose::level_columns, number_, levels_.size());
    std::vector<std::uint64_t> ranks;
    levels_.emplace_back();
    draw(tree_, params_.colsample_bylevel, key, levels_.back(), ranks);
  }
  return levels_[static_cast<std::size_t>(depth)];  // a deque's elements stay where they are
}

std::span<const std::uint32_t> ColumnSampler::of_path(const GrowNode& node,
                                                      std::vector<std::uint32_t>& allowed) {
  const std::span<const std::uint32_t> features = of_level(node.depth);
  if (!restricts()) return features;
  allowed.clear();
  std::copy_if(features.begin(), features.end(), std::back_inserter(allowed), [&](std::uint32_t f) {
    return std::any_of(node.groups.begin(), node.groups.end(),
                       [&](std::uint32_t g) { return holds(params_.interactions[g], f); });
  });
  return allowed;
}

std::vector<std::uint32_t> ColumnSampler::rest_of_node(const GrowNode& node) {
  if (params_.colsample_bynode >= 1) return {};
  std::vector<std::uint32_t> allowed, drawn, rest;
  std::vector<std::uint64_t> ranks;
  const std::span<const std::uint32_t> features = of_path(node, allowed);
  if (features.empty()) return {};
  const std::uint64_t key = counter_hash(seed_, Purpose::node_columns, number_, node.path);
  draw(features, params_.colsample_bynode, key, drawn, ranks);
  std::set_difference(features.begin(), features.end(), drawn.begin(), drawn.end(),
                      std::back_inserter(rest));
  // In the order that `draw` takes the first ones of.
  const auto random_key = [key](std::uint32_t f) { return mix_bits(mix_bits(key + f)); };
  std::sort(rest.begin(), rest.end(), [random_key](std::uint32_t a, std::uint32_t b) {
    return random_key(a) < random_key(b);
  });
  return rest;
}

std::span<const std::uint32_t> ColumnSampler::of_node(const GrowNode& node, Scratch& scratch) {
  if (!restricts()) return of_node(node.depth, node.path, scratch);
  return draw_for(of_path(node, scratch.allowed), node.path, scratch);
}

std::span<const std::uint32_t> ColumnSampler::of_node(std::int64_t depth, std::uint64_t path,
                                                      Scratch& scratch) {
  if (params_.colsample_bylevel >= 1 && params_.colsample_bynode >= 1) return in_turn_;
  return draw_for(of_level(depth), path, scratch);
}

std::span<const std::uint32_t> ColumnSampler::draw_for(std::span<const std::uint32_t> from,
                                                       std::uint64_t path, Scratch& scratch) const {
  if (from.empty()) return {};
  draw(from, params_.colsample_bynode, counter_hash(seed_, Purpose::node_columns, number_, path),
       scratch.features, scratch.ranks);
  turn(scratch.features);
  return scratch.features;
}

void ColumnSampler::open_groups(GrowNode& root) const {
  root.groups.resize(params_.interactions.size());
  std::iota(root.groups.begin(), root.groups.end(), 0u);
}

void ColumnSampler::open_groups(const GrowNode& parent, GrowNode& child) const {
  child.groups.clear();
  std::copy_if(parent.groups.begin(), parent.groups.end(), std::back_inserter(child.groups),
               [&](std::uint32_t g) {
                 return holds(params_.interactions[g], static_cast<std::uint32_t>(parent.feature));
               });
}

}  // namespace arboost
