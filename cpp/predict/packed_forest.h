// A forest, prepared once for many predictions, in the form that suits the trees and the number of
// rows:
//
//   up to 256 leaves a tree   formulas over bits, 512 rows at a time (bit_forest.h)
//   the same, a single row    bytes of answers to all tests (row_forest.h)
//   deeper trees              nodes of 8 bytes, over numbers of thresholds (coded.h)
//   few rows, and the rest    nodes of 16 bytes, over values (traverse.h)
//
// All forms give the same scores.
#pragma once

#include <cstddef>
#include <memory>

#include "base/parallel.h"
#include "table/columns.h"
#include "tree/forest.h"

namespace arboost {

// The arrays that the forest views must live as long.
class PackedForest {
 public:
  // Throws as `traverse` does.
  PackedForest(const Forest& forest, std::size_t n_columns, std::size_t n_outputs);
  ~PackedForest();

  std::size_t n_trees() const;
  std::size_t n_columns() const;
  std::size_t n_outputs() const;

  void traverse(const Columns& table, std::size_t n_outputs, Team& team, double* scores) const;
  void traverse_leaves(const Columns& table, std::size_t n_trees, Team& team,
                       FunctionRef<void(const LeafBlock&, int member)> consume) const;

  // scores[output] += the trees' values for one row; `value_of` returns its value in a column. On
  // the calling thread, and without heap allocation unless the trees use many columns.
  void traverse_row(FunctionRef<double(std::size_t column)> value_of, double* scores) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace arboost
