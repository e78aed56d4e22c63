// A tree, one row and one background row -> what each feature adds to the difference of the two.
//
// The walk goes where either of the two rows goes. At a split that tells them apart, its feature is
// taken from the row on one way and from the background row on the other; splits of features that
// have been taken follow that. A leaf at the end of a way with n features from the row and m from
// the background row counts (n - 1)! m! / (n + m)! for each of the first, and minus
// n! (m - 1)! / (n + m)! for each of the others. (Lundberg and others 2020, algorithm 3.)
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

  // phi[column * stride] += scale times what value k of the tree's leaves says.
  void add(std::size_t tree, std::size_t k, const Row& row, const Row& background, double scale,
           double* phi, std::size_t stride);

 private:
  enum class From : std::uint8_t { none, row, background };
  struct Fork {                 // a split that tells the two rows apart
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
