// Trees with few features on a path use patterns, whose cost is the sum of those of the rows and of
// the background rows; all other trees, and small tables, use pairs of rows, whose cost is the
// product. The choice depends only on the tree and the sizes of both tables. Parallel over trees,
// or over blocks of rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "explain/shap/shap.h"
#include "explain/shap/shap_program.h"

namespace arboost {
namespace {

// A tree, one row and one background row -> contribution of each feature to the difference of their
// scores.
//
// The walk follows both rows. At a split that separates them, one path takes the split's feature
// from the row and the other path from the background row; later splits on a taken feature follow
// its source. A leaf at the end of a path with n features from the row and m from the background
// row has the weight (n - 1)! m! / (n + m)! for each of the former, and -n! (m - 1)! / (n + m)! for
// each of the latter. (Lundberg and others 2020, algorithm 3.)
class ShapPairs {
 public:
  explicit ShapPairs(const ShapForest& forest) : forest_(forest), taken_(forest.columns.size()) {}

  struct Row {
    const ShapBlock& block;
    std::size_t number;
    double value(std::size_t column) const {
      return block.values()[column * block.stride() + number];
    }
  };

  // phi[column * stride] += scale times the contributions to value k of the tree's leaves.
  void add(std::size_t tree, std::size_t k, const Row& row, const Row& background, double scale,
           double* phi, std::size_t stride) {
    const Forest& trees = forest_.trees;
    const std::size_t first = forest_.first_node(tree);
    weight_ = scale;
    std::size_t node = first;
    while (true) {
      const std::size_t leaf = descend(node, first, row, background);
      const double value = trees.value[leaf * trees.width + k] * weight_;
      double row_sum = n_row_ > 0 ? value / static_cast<double>(n_row_) : 0;
      double background_sum = n_background_ > 0 ? value / static_cast<double>(n_background_) : 0;
      // Forks whose second path ends here are done.
      while (!forks_.empty() && forks_.back().is_second) {
        const Fork fork = forks_.back();
        forks_.pop_back();
        phi[fork.column * stride] -= background_sum;
        row_sum += fork.row_sum;
        background_sum += fork.background_sum;
        taken_[fork.column] = From::none;
        --n_background_;
      }
      if (forks_.empty()) return;
      Fork& fork = forks_.back();
      phi[fork.column * stride] += row_sum;
      fork.row_sum = row_sum;
      fork.background_sum = background_sum;
      fork.is_second = true;
      taken_[fork.column] = From::background;
      --n_row_;
      ++n_background_;
      weight_ = fork.weight * static_cast<double>(n_background_) /
                static_cast<double>(n_row_ + n_background_);
      node = fork.other;
    }
  }

 private:
  enum class From : std::uint8_t { none, row, background };
  struct Fork {                 // a split that separates the two rows
    std::size_t column, other;  // the node on the background row's way
    double weight;              // n! m! / (n + m)! above the fork
    double row_sum, background_sum;
    bool is_second;  // on the way of the background row
  };

  bool goes_left(std::size_t node, const Row& row) const {
    const Forest& trees = forest_.trees;
    const double x = row.value(forest_.column[node]);
    if (trees.level_set[node] >= 0)
      return holds(forest_.sets[static_cast<std::size_t>(trees.level_set[node])],
                   static_cast<std::uint32_t>(x));
    return trees.default_left[node] ? !(x > trees.threshold[node]) : x <= trees.threshold[node];
  }

  // Descends from a node to a leaf, following the row wherever the two rows differ.
  std::size_t descend(std::size_t node, std::size_t first, const Row& row, const Row& background) {
    while (forest_.trees.left[node] != 0) {
      const std::size_t column = forest_.column[node];
      const std::size_t left = first + static_cast<std::size_t>(forest_.trees.left[node]);
      bool goes = goes_left(node, taken_[column] == From::background ? background : row);
      if (taken_[column] == From::none && goes != goes_left(node, background)) {
        forks_.push_back({column, left + (goes ? 1 : 0), weight_, 0, 0, false});
        taken_[column] = From::row;
        weight_ *=
            static_cast<double>(n_row_ + 1) / static_cast<double>(n_row_ + n_background_ + 1);
        ++n_row_;
      }
      node = left + (goes ? 0 : 1);
    }
    return node;
  }

  const ShapForest& forest_;
  std::vector<From> taken_;  // by column
  std::vector<Fork> forks_;
  std::size_t n_row_ = 0, n_background_ = 0;
  double weight_ = 1;
};

// A tree and a background table -> contributions to phi, tabulated by leaf and pattern of a row.
//
// A leaf has a few distinct features on its path. The pattern of a row is the set of features whose
// splits it satisfies; contributions depend only on the pattern. With n background rows b of
// patterns B,
//
//   phi_i(A) = v / n Sum over b of (q_i - b_i) Integral of Prod over j != i of f_j(t),
//   f_j(t) = b_j + t (q_j - b_j),
//
// where q_j = 1 for j in A and b_j = 1 for j in B. The product has one factor a feature, so the sum
// over all B is one pass over 2^d counts for each feature and point t. A row then costs one look-up
// a leaf, whatever the number of background rows.
class ShapPatterns {
 public:
  static constexpr std::size_t most_pattern_features = 8;

  ShapPatterns(const ShapForest& forest, std::size_t tree) : forest_(forest), tree_(tree) {
    list(forest.first_node(tree));
  }

  // True if no leaf has too many features; otherwise no other function may be called.
  bool fits() const { return fits_; }
  std::size_t n_numbers() const { return n_numbers_; }
  // Cost of the tables, and of a row, in steps of about a nanosecond.
  double table_cost() const { return table_cost_; }
  double row_cost() const { return static_cast<double>(2 * nodes_.size() + n_adds_); }

  // Builds the tables from blocks of the background, in any order, then `finish`.
  void start() { counts_.assign(n_counts_, 0.0); }

  void count(const ShapBlock& background, std::size_t n_rows) {
    visit_leaves(background, n_rows, [&](std::size_t, const Leaf& leaf, std::uint32_t pattern) {
      counts_[leaf.first_count + pattern] += 1;
    });
  }

  void finish(std::size_t n_rows) {
    tables_.assign(n_numbers_, 0.0);
    std::vector<Quadrature> rules;  // by number of features
    for (std::size_t n = 0; n <= most_pattern_features; ++n)
      rules.push_back(gauss_legendre(points_for(n)));
    for (const Leaf& leaf : leaves_)
      transform(leaf, rules[leaf.n_features], 1 / static_cast<double>(n_rows));
    counts_ = {};
  }

  // phi[(output * columns + column) * stride + row] += the tree's contributions, for rows of a
  // block.
  void add(const ShapBlock& rows, std::size_t n_rows, double* phi) const {
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

 private:
  struct Node {  // in the order of a walk that goes left first
    double threshold;
    std::uint32_t column, depth;
    std::uint32_t set;
    std::uint32_t bit;  // of the feature that the edge to this node tests
    bool again;         // the bit is there already
    bool is_left, missing_left, is_leaf;
  };
  struct Leaf {
    std::size_t first, first_count;  // in the tables and in the counts
    std::size_t node;                // in the forest
    std::uint32_t n_features;
    std::uint32_t columns[most_pattern_features];
  };

  void list(std::size_t root) {
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

  void add_leaf(std::size_t node, const std::vector<std::uint32_t>& features) {
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
  void visit_leaves(const ShapBlock& rows, std::size_t n_rows, const Visit& visit) const {
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

  // At a point t, feature j contributes the factor t + (1 - t) b_j for a row that satisfies its
  // splits, and (1 - t) b_j for a row that does not; if j is the explained feature, 1 - b_j or
  // -b_j.
  void transform(const Leaf& leaf, const Quadrature& rule, double scale) {
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

  const ShapForest& forest_;
  std::size_t tree_, n_numbers_ = 0, n_counts_ = 0, n_adds_ = 0, depth_ = 0;
  double table_cost_ = 0;
  bool fits_ = true;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<double> counts_;  // [leaf][pattern]
  std::vector<double> tables_;  // [leaf][pattern][feature]
};

constexpr std::size_t rows_at_once = 256, few_rows = 8;
constexpr std::size_t most_numbers = std::size_t{1} << 23;  // of tables at a time

using Patterns = std::unique_ptr<ShapPatterns>;  // none for a tree that goes by pairs

class Background {
 public:
  Background(const Columns& table, const Columns& background, const ShapForest& forest, Team& team,
             double* values)
      : table_(table), background_(background), forest_(forest), team_(team), values_(values) {}

  void run() {
    std::fill_n(values_, table_.n_rows * forest_.n_features * forest_.n_outputs, 0.0);
    if (table_.n_rows == 0 || forest_.columns.empty()) return;
    std::vector<std::size_t> by_pairs;
    std::size_t numbers = 0;
    for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
      auto patterns = std::make_unique<ShapPatterns>(forest_, t);
      if (!is_worth(*patterns, t)) {
        by_pairs.push_back(t);
        continue;
      }
      numbers += patterns->n_numbers();
      ready_.push_back(std::move(patterns));
      if (numbers > most_numbers) {
        add_patterns();
        numbers = 0;
      }
    }
    add_patterns();
    add_pairs(by_pairs);
  }

 private:
  bool is_worth(const ShapPatterns& patterns, std::size_t tree) const {
    if (!patterns.fits()) return false;
    const auto rows = static_cast<double>(table_.n_rows);
    const auto others = static_cast<double>(background_.n_rows);
    const auto nodes = static_cast<double>(forest_.first_node(tree + 1) - forest_.first_node(tree));
    const double by_pair = std::min(nodes, 32.0) * 3;
    return patterns.table_cost() + patterns.row_cost() * (rows + others) < by_pair * rows * others;
  }

  // Calls work(block, n_rows) for the background, block by block.
  template <class Work>
  void for_background(const Work& work) const {
    ShapBlock block(background_, forest_.columns, std::min(rows_at_once, background_.n_rows));
    for (std::size_t at = 0; at < background_.n_rows; at += rows_at_once) {
      const std::size_t end = std::min(background_.n_rows, at + rows_at_once);
      block.read(at, end);
      work(block, end - at);
    }
  }

  // Calls work(block, n_rows, phi) for all rows, in parallel, and adds phi to the results.
  template <class Work>
  void for_rows(std::size_t at_once, const Work& work) {
    const std::size_t n_columns = forest_.columns.size(), n_outputs = forest_.n_outputs;
    const auto members = static_cast<std::size_t>(team_.size());
    const std::size_t share = (table_.n_rows + 2 * members - 1) / (2 * members);
    const std::size_t rows = std::min(at_once, share);
    team_.for_chunks(0, table_.n_rows, rows, [&](std::size_t begin, std::size_t end, int) {
      ShapBlock block(table_, forest_.columns, end - begin);
      block.read(begin, end);
      std::vector<double> phi(n_outputs * n_columns * block.stride(), 0.0);
      work(block, end - begin, phi.data());
      for (std::size_t row = begin; row < end; ++row)
        for (std::size_t c = 0; c < n_columns; ++c)
          for (std::size_t k = 0; k < n_outputs; ++k) {
            const std::size_t feature = row * forest_.n_features + forest_.columns[c].feature;
            values_[feature * n_outputs + k] +=
                phi[(k * n_columns + c) * block.stride() + row - begin];
          }
    });
  }

  void add_patterns() {
    if (ready_.empty()) return;
    team_.for_chunks(0, ready_.size(), 1, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) {
        ready_[i]->start();
        for_background([&](const ShapBlock& block, std::size_t n) { ready_[i]->count(block, n); });
        ready_[i]->finish(background_.n_rows);
      }
    });
    for_rows(rows_at_once, [&](const ShapBlock& block, std::size_t n_rows, double* phi) {
      for (const Patterns& patterns : ready_) patterns->add(block, n_rows, phi);
    });
    ready_.clear();
  }

  // Each block of the background is paired with all rows, a few at a time, with Ctrl-C checks in
  // between.
  void add_pairs(const std::vector<std::size_t>& trees) {
    if (trees.empty()) return;
    const double scale = 1 / static_cast<double>(background_.n_rows);
    for_background([&](const ShapBlock& others, std::size_t n_others) {
      for_rows(few_rows, [&](const ShapBlock& block, std::size_t n_rows, double* phi) {
        ShapPairs pairs(forest_);
        for (const std::size_t t : trees)
          for (std::size_t k = 0; k < forest_.trees.width; ++k) {
            const std::size_t output = forest_.first_output(t) + k;
            double* to = phi + output * forest_.columns.size() * block.stride();
            for (std::size_t row = 0; row < n_rows; ++row)
              for (std::size_t other = 0; other < n_others; ++other)
                pairs.add(t, k, {block, row}, {others, other}, scale, to + row, block.stride());
          }
      });
    });
  }

  const Columns& table_;
  const Columns& background_;
  const ShapForest& forest_;
  Team& team_;
  double* values_;
  std::vector<Patterns> ready_;  // to be filled, in the order of the trees
};

}  // namespace

void shap_against(const Columns& table, const Columns& background, const ShapForest& forest,
                  Team& team, double* values) {
  Background(table, background, forest, team, values).run();
}

}  // namespace arboost
