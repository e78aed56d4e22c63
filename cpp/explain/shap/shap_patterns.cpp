// Cost: 2 d 2^d steps a leaf and quadrature point for its table, and one step for each feature of a
// leaf and row.
#include "explain/shap/shap_patterns.h"

#include <algorithm>

#include "explain/shap/shap_quadrature.h"

namespace arboost {

ShapPatterns::ShapPatterns(const ShapForest& forest, std::size_t tree)
    : forest_(forest), tree_(tree) {
  list(forest.first_node(tree));
}

void ShapPatterns::list(std::size_t root) {
  const Forest& trees = forest_.trees;
  struct Waiting {
    std::size_t node;
    std::uint32_t depth, column;  // of the edge
    std::size_t n_features;       // on the path above the edge
    bool is_left;
  };
  std::vector<Waiting> waiting{{root, 0, 0, 0, false}};
  std::vector<std::uint32_t> features;  // different ones on the path
  while (!waiting.empty()) {
    const Waiting at = waiting.back();
    waiting.pop_back();
    features.resize(at.n_features);
    const auto entry = std::find(features.begin(), features.end(), at.column);
    const bool again = entry != features.end();
    const auto bit = static_cast<std::uint32_t>(1) << (entry - features.begin());
    if (at.depth > 0 && !again) features.push_back(at.column);
    if (features.size() > most_pattern_features) {
      fits_ = false;
      return;
    }
    depth_ = std::max<std::size_t>(depth_, at.depth);
    const bool is_leaf = trees.left[at.node] == 0;
    nodes_.push_back({.threshold = trees.threshold[at.node],
                      .column = forest_.column[at.node],
                      .depth = at.depth,
                      .set = static_cast<std::uint32_t>(trees.level_set[at.node]),
                      .bit = bit,
                      .again = again,
                      .is_left = at.is_left,
                      .missing_left = trees.default_left[at.node] != 0,
                      .is_leaf = is_leaf});
    if (is_leaf) {
      add_leaf(at.node, features);
      continue;
    }
    const std::size_t left =
        forest_.first_node(tree_) + static_cast<std::size_t>(trees.left[at.node]);
    const std::uint32_t column = forest_.column[at.node];
    waiting.push_back({left + 1, at.depth + 1, column, features.size(), false});
    waiting.push_back({left, at.depth + 1, column, features.size(), true});
  }
}

void ShapPatterns::add_leaf(std::size_t node, const std::vector<std::uint32_t>& features) {
  const std::size_t n = features.size(), patterns = std::size_t{1} << n;
  Leaf leaf{.first = n_numbers_,
            .first_count = n_counts_,
            .node = node,
            .n_features = static_cast<std::uint32_t>(n),
            .columns = {}};
  std::copy(features.begin(), features.end(), leaf.columns);
  leaves_.push_back(leaf);
  n_numbers_ += patterns * n;
  n_counts_ += patterns;
  n_adds_ += n;
  table_cost_ += static_cast<double>(2 * points_for(n) * n * patterns);
}

template <class Visit>
void ShapPatterns::visit_leaves(const ShapBlock& rows, std::size_t n_rows,
                                const Visit& visit) const {
  std::vector<std::uint32_t> pattern(depth_ + 1, 0);
  std::vector<std::uint8_t> goes_left(depth_ + 1, 0);
  for (std::size_t row = 0; row < n_rows; ++row) {
    std::size_t leaf = 0;
    for (const Node& node : nodes_) {
      if (node.depth > 0) {
        const bool met = goes_left[node.depth - 1] == static_cast<std::uint8_t>(node.is_left);
        const std::uint32_t before = pattern[node.depth - 1];
        const std::uint32_t missed = node.again ? before & ~node.bit : before;
        pattern[node.depth] = met ? (node.again ? before : before | node.bit) : missed;
      }
      if (node.is_leaf) {
        visit(row, leaves_[leaf++], pattern[node.depth]);
        continue;
      }
      const double x = rows.values()[node.column * rows.stride() + row];
      bool left = node.missing_left ? !(x > node.threshold) : x <= node.threshold;
      if (node.set != no_level_set)
        left = holds(forest_.sets[node.set], static_cast<std::uint32_t>(x));
      goes_left[node.depth] = left;
    }
  }
}

void ShapPatterns::start() {
  counts_.assign(n_counts_, 0.0);
}

void ShapPatterns::count(const ShapBlock& background, std::size_t n_rows) {
  visit_leaves(background, n_rows, [&](std::size_t, const Leaf& leaf, std::uint32_t pattern) {
    counts_[leaf.first_count + pattern] += 1;
  });
}

void ShapPatterns::finish(std::size_t n_rows) {
  tables_.assign(n_numbers_, 0.0);
  std::vector<Quadrature> rules;  // by number of features
  for (std::size_t n = 0; n <= most_pattern_features; ++n)
    rules.push_back(gauss_legendre(points_for(n)));
  for (const Leaf& leaf : leaves_)
    transform(leaf, rules[leaf.n_features], 1 / static_cast<double>(n_rows));
  counts_ = {};
}

// At a point t, feature j contributes the factor t + (1 - t) b_j for a row that satisfies its
// splits, and (1 - t) b_j for a row that does not; if j is the explained feature, 1 - b_j or -b_j.
void ShapPatterns::transform(const Leaf& leaf, const Quadrature& rule, double scale) {
  const std::size_t n = leaf.n_features, patterns = std::size_t{1} << n;
  const double* counts = counts_.data() + leaf.first_count;
  double* table = tables_.data() + leaf.first;
  std::vector<double> sums(patterns);
  for (std::size_t p = 0; p < rule.points.size(); ++p) {
    const double t = rule.points[p], weight = rule.weights[p] * scale;
    std::copy_n(counts, patterns, sums.data());
    for (std::size_t bit = 1; bit < patterns; bit *= 2)
      for (std::size_t a = 0; a < patterns; ++a) {
        if (!(a & bit)) continue;
        const double without = sums[a ^ bit], with = sums[a];
        sums[a] = t * without + with;
        sums[a ^ bit] = (1 - t) * with;
      }
    for (std::size_t a = 0; a < patterns; ++a)
      for (std::size_t j = 0; j < n; ++j) {
        const std::size_t bit = std::size_t{1} << j;
        const double with = sums[a & ~bit] / (1 - t);  // of background rows that meet feature j
        table[a * n + j] += weight * ((a & bit) ? (sums[a] - with) / t : -with);
      }
  }
}

void ShapPatterns::add(const ShapBlock& rows, std::size_t n_rows, double* phi) const {
  const Forest& trees = forest_.trees;
  const std::size_t stride = rows.stride(), output_stride = forest_.columns.size() * stride;
  double* first = phi + forest_.first_output(tree_) * output_stride;
  visit_leaves(rows, n_rows, [&](std::size_t row, const Leaf& leaf, std::uint32_t pattern) {
    const double* entry = tables_.data() + leaf.first + pattern * leaf.n_features;
    for (std::size_t k = 0; k < trees.width; ++k) {
      const double value = trees.value[leaf.node * trees.width + k];
      double* to = first + k * output_stride + row;
      for (std::size_t j = 0; j < leaf.n_features; ++j)
        to[leaf.columns[j] * stride] += value * entry[j];
    }
  });
}

}  // namespace arboost
