// A forest in the layout of kernels (predict/device/walk_records.h), in the memory of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "predict/device/walk_records.h"
#include "tree/forest.h"

namespace arboost::cuda {

struct ForestLayout {
  struct Small {
    std::vector<std::uint32_t> nodes;
    std::vector<double> values;
    std::vector<TreeGroup> groups;
    std::uint32_t most_trees, depth, block_rows;
  };

  std::vector<CodedColumn> columns;   // without values
  std::vector<std::size_t> features;  // of the columns
  std::vector<double> thresholds;     // of all columns
  std::uint32_t per_word;
  std::vector<ForestNode> nodes;
  std::vector<std::uint64_t> tree_start;
  std::vector<std::uint32_t> order, output_start;
  std::vector<CodeSet> sets;
  std::optional<Small> small;  // where trees are shallow, and have leaves of one value

  std::uint32_t n_words() const {
    return (static_cast<std::uint32_t>(columns.size()) + per_word - 1) / per_word;
  }
  // The number of a split's column; the forest must have this split.
  std::uint32_t column_of(std::size_t feature, bool of_codes) const;
  // Code of a value in a column: 0 for NaN.
  std::uint32_t code_of(std::uint32_t column, double value) const;
};

// Throws std::invalid_argument where a tree leads outside its nodes, the columns or the outputs.
ForestLayout forest_layout(const Forest& forest, std::size_t n_columns, std::size_t n_outputs);

}  // namespace arboost::cuda
