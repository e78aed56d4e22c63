// Trees -> steps and numbers for the SHAP kernels (explain/shap/shap_run.h); rows -> blocks of
// doubles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"  // Buffer
#include "explain/shap/shap_run.h"
#include "predict/traverse.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// Gauss-Legendre quadrature on [0, 1]: n points integrate polynomials of degree below 2 n exactly.
struct Quadrature {
  std::vector<double> points, weights;
};

// The same bits on every machine: only + - * / are used.
Quadrature gauss_legendre(std::size_t n);

// Number of points for a product of n_factors linear functions with values in [0, 1]. Up to about a
// hundred factors, the integral is exact. Products of more factors are bell-shaped with a width
// that falls with the square root of n_factors; with points a third of that width apart, the error
// is below 1e-15.
std::size_t points_for(std::size_t n_factors);

// A checked forest, with the data that its trees share.
struct ShapForest {
  // Throws std::invalid_argument where a tree leads outside its nodes, the columns or the outputs.
  ShapForest(const Forest& forest, std::span<const double> covers, std::size_t features,
             std::size_t outputs);

  // The share of a node's training rows in its left child; one half for a cover of 0.
  double left_share(std::size_t left) const;
  std::size_t n_trees() const { return trees.output.size(); }
  std::size_t first_node(std::size_t tree) const {
    return static_cast<std::size_t>(trees.tree_start[tree]);
  }
  // Numbers of pairs of different columns.
  static std::size_t pair(std::size_t a, std::size_t b) {
    return a > b ? a * (a - 1) / 2 + b : b * (b - 1) / 2 + a;
  }
  std::size_t n_pairs() const { return columns.empty() ? 0 : pair(columns.size(), 0); }
  // Outputs that a tree adds to.
  std::size_t first_output(std::size_t tree) const {
    return static_cast<std::size_t>(trees.output[tree]);
  }

  Forest trees;
  std::span<const double> cover;
  std::size_t n_features, n_outputs;
  std::vector<UsedColumn> columns;    // that splits look at
  std::vector<std::uint32_t> column;  // of each node; leaves: 0
  std::vector<CodeSet> sets;          // with a bit for the missing code, as the forest has them
};

// One tree at a time, in parts of some steps; memory is kept from tree to tree.
class ShapProgram {
 public:
  ShapProgram(const ShapForest& forest, bool with_pairs);

  void set_tree(std::size_t tree);
  std::size_t n_parts() const { return parts_.size(); }
  // Computes the numbers of a part for value k of the leaves. The caller fills in rows, results and
  // scratch.
  ShapRun part(std::size_t number, std::size_t k);
  // Of rows that walk together.
  std::size_t scratch_size() const { return shap_scratch(depth_, points_, with_pairs_); }

 private:
  struct Edge {
    double above;  // share of the rows that meet all splits above by the same feature
    double share;  // of the rows of the split above the edge
  };
  struct Frame {           // a split on the path
    std::size_t enter;     // number of its step
    std::int32_t deepest;  // what was the deepest split of its feature before
    int children;          // that have been looked at
    bool adds;             // some of its sums are there already
  };
  // Data from which the numbers of a step are computed.
  struct Origin {
    Edge edge;         // to the node
    double above;      // share of the rows that meet all splits above by the node's feature
    std::size_t left;  // child of the node, in the forest
  };
  struct Part {
    std::size_t first, end;  // steps
    std::size_t n_numbers;   // for one point
  };

  struct Factors;

  void visit(std::size_t node, const Edge& edge, bool is_left);
  void next_child();
  void finish();
  void add_partners(ShapStep& step);
  void divide();
  void fill_down(const ShapStep& step, const Edge& edge);
  void fill_up(const ShapStep& step, const Edge& edge);
  void fill_leaves(const ShapStep& step, const Origin& origin, std::size_t k);
  Edge edge_to(const Origin& origin, std::size_t side) const;
  template <class Part>
  double* part_of(std::size_t first, Part part) {
    return numbers_.data() + first + static_cast<std::size_t>(part) * points_;
  }

  const ShapForest& forest_;
  bool with_pairs_;
  std::size_t first_ = 0, points_ = 0, depth_ = 0, n_distinct_ = 0, most_distinct_ = 0;
  std::vector<ShapStep> steps_;
  std::vector<Origin> origins_;  // of each step
  std::vector<ShapPartner> partners_;
  std::vector<Frame> path_;
  std::vector<double> met_;            // [depth]: share that meets all splits of the edge's feature
  std::vector<std::int32_t> deepest_;  // [column]: depth of its last split on the path, or -1
  std::vector<Part> parts_;
  std::vector<double> numbers_;    // of one part
  std::vector<Quadrature> rules_;  // by number of points, made when they are needed
};

constexpr std::size_t whole_lanes(std::size_t rows) {
  return (rows + shap_lanes - 1) / shap_lanes * shap_lanes;
}

// A block of a table's rows as doubles, column-major: the input of the SHAP kernels.
class ShapBlock {
 public:
  ShapBlock(const Columns& table, const std::vector<UsedColumn>& columns, std::size_t rows)
      : table_(table), columns_(columns), stride_(whole_lanes(rows)) {
    values_ = Buffer<double>(std::max<std::size_t>(1, columns.size()) * stride_);
    std::fill_n(values_.data(), values_.size(), 0.0);
  }

  std::size_t stride() const { return stride_; }
  const double* values() const { return values_.data(); }

  void read(std::size_t begin, std::size_t end) {
    read_columns(table_, columns_, begin, end, values_.data(), stride_, 1);
  }

 private:
  const Columns& table_;
  const std::vector<UsedColumn>& columns_;
  std::size_t stride_;
  Buffer<double> values_;
};

}  // namespace arboost
