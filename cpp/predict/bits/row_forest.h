// A forest of small trees -> scores of single rows, on the calling thread and without heap
// allocation.
//
// First all tests of the forest (predict/bits/bit_trees.h) are evaluated, a byte each: the bytes of
// a column are ones up to the rank of its value, then zeros. Then a step from node to node is two
// loads from small arrays. Cost: about 2 ns a tree, and 5 ns a column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "predict/bits/bit_forest.h"
#include "tree/forest.h"

namespace arboost {

class RowForest {
 public:
  // Empty if the forest has too many tests, or vector leaves. `bits` must outlive the result.
  static std::optional<RowForest> make(const BitForest& bits, const Forest& forest);

  // scores[output] += the trees' values, in the order of the trees, for a row with values x[i] of
  // bits.values[i].
  void add(const double* x, double* scores) const;
  const std::vector<BitForest::Values>& values() const { return *bit_values_; }

 private:
  struct Column {
    const std::uint8_t* codes;  // of the numbers of values
    std::uint32_t n;            // tests
    std::uint32_t first;        // test, or set
    bool by_sets;
  };
  struct Values {  // of a feature, and the columns that read them
    const BitForest::Values* values;
    std::size_t missing;  // number of missing ones
    std::uint32_t begin, end;
  };
  struct Set {
    std::uint32_t test;
    CodeSet right;
  };
  // Trees of one form and output, one after the other.
  struct Run {
    int depth;  // of full trees; -1: uneven ones
    std::uint32_t output;
    std::size_t n_trees;
    std::size_t program, values;
  };

  void answer(const double* x, std::uint8_t* answers) const;
  void add_columns(const BitForest& bits);
  void add_tree(const BitForest& bits, const BitGroup& group, const BitTree& tree,
                std::uint32_t first_test, const double* values);

  const std::vector<BitForest::Values>* bit_values_ = nullptr;
  std::vector<Values> values_of_;
  std::vector<Column> columns_;
  std::vector<Set> sets_;
  std::vector<Run> runs_;
  std::vector<std::uint16_t> program_;
  std::vector<double> values_;
};

}  // namespace arboost
