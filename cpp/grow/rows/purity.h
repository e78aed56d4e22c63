// Purity of nodes: rows -> true if all have the same target value, so that CART's impurity is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grow/kernels/grow_kernels.h"
#include "grow/rows/value_bounds.h"
#include "loss/apply.h"

namespace arboost {

// Compares the fixed-point pairs: the integers of the split search are coarser, and may be rounded
// stochastically. The target value of a row is -g / h, whatever its weight in a sample.
class Purity {
 public:
  // `table_rows`: as RowPartition has them.
  Purity(std::size_t n_table_rows, std::span<const RowId> table_rows);

  // Of trees for one output, or for all of them; the gradients must stay until the next call.
  void start_tree(const Gradients& gradients, std::size_t output, std::size_t width,
                  std::int32_t tolerance);
  // Whether more than the rounding of the pairs is tolerated (grow/tree_parts.h).
  bool is_tolerant() const { return tolerance_ > 1; }

  // True if one target value is within the rounding of all rows' pairs, in each output; rows of
  // zero weight are ignored. The greatest lower and the least upper bound of the value decide, so
  // the order of the rows does not. Stops where they cross. Thread-safe.
  bool is_pure(const Element* elements, std::size_t n) const;

  // Bounds of some rows, which those of other rows may narrow. Stops where they are empty.
  ValueBounds bounds(const Element* elements, std::size_t n, std::size_t output) const;

 private:
  const FixedPair* pairs_of(Element e) const;

  std::vector<std::uint32_t> position_;  // by table row; empty: row r is at position r
  const FixedPair* pairs_ = nullptr;
  std::size_t row_stride_ = 1, output_stride_ = 1, width_ = 1;
  std::int32_t tolerance_ = 1;
};

}  // namespace arboost
