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
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "explain/shap/shap_block.h"
#include "explain/shap/shap_program.h"

namespace arboost {

constexpr std::size_t most_pattern_features = 8;

class ShapPatterns {
 public:
  ShapPatterns(const ShapForest& forest, std::size_t tree);

  // True if no leaf has too many features; otherwise no other function may be called.
  bool fits() const { return fits_; }
  std::size_t n_numbers() const { return n_numbers_; }
  // Cost of the tables, and of a row, in steps of about a nanosecond.
  double table_cost() const { return table_cost_; }
  double row_cost() const { return static_cast<double>(2 * nodes_.size() + n_adds_); }

  // Builds the tables from blocks of the background, in any order, then `finish`.
  void start();
  void count(const ShapBlock& background, std::size_t n_rows);
  void finish(std::size_t n_rows);

  // phi[(output * columns + column) * stride + row] += the tree's contributions, for rows of a
  // block.
  void add(const ShapBlock& rows, std::size_t n_rows, double* phi) const;

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

  void list(std::size_t root);
  void add_leaf(std::size_t node, const std::vector<std::uint32_t>& features);
  template <class Visit>
  void visit_leaves(const ShapBlock& rows, std::size_t n_rows, const Visit& visit) const;
  void transform(const Leaf& leaf, const Quadrature& rule, double scale);

  const ShapForest& forest_;
  std::size_t tree_, n_numbers_ = 0, n_counts_ = 0, n_adds_ = 0, depth_ = 0;
  double table_cost_ = 0;
  bool fits_ = true;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<double> counts_;  // [leaf][pattern]
  std::vector<double> tables_;  // [leaf][pattern][feature]
};

}  // namespace arboost
