// A tree, one row and one background row -> contribution of each feature to the difference of their
// scores.
//
// The walk follows both rows. At a split that separates them, one path takes the split's feature
// from the row and the other path from the background row; later splits on a taken feature follow
// its source. A leaf at the end of a path with n features from the row and m from the background
// row has the weight (n - 1)! m! / (n + m)! for each of the former, and -n! (m - 1)! / (n + m)! for
// each of the latter. (Lundberg and others 2020, algorithm 3.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "explain/shap/shap_block.h"
#include "explain/shap/shap_program.h"

namespace arboost {

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
           double* phi, std::size_t stride);

 private:
  enum class From : std::uint8_t { none, row, background };
  struct Fork {                 // a split that separates the two rows
    std::size_t column, other;  // the node on the background row's way
    double weight;              // n! m! / (n + m)! above the fork
    double row_sum, background_sum;
    bool is_second;  // on the way of the background row
  };

  bool goes_left(std::size_t node, const Row& row) const;
  std::size_t descend(std::size_t node, std::size_t first, const Row& row, const Row& background);

  const ShapForest& forest_;
  std::vector<From> taken_;  // by column
  std::vector<Fork> forks_;
  std::size_t n_row_ = 0, n_background_ = 0;
  double weight_ = 1;
};

}  // namespace arboost
