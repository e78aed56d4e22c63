// A packed forest that keeps its arrays alive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/common.h"
#include "bindings/forest_arrays.h"
#include "predict/packed_forest.h"

namespace arboost::bindings {

using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Leaves = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A packed forest and the arrays that it views.
struct KeptForest {
  KeptForest(nb::handle forest, std::size_t n_columns, std::size_t n_outputs)
      : arrays(forest), packed(arrays.views(), n_columns, n_outputs) {}

  void traverse(const Columns& columns, const Scores& out, int n_threads) const {
    require(out.shape(0) == columns.n_rows, "out has another number of rows than the table");
    GilRelease release;
    Team team = team_for(columns.n_rows * packed.n_trees(), n_threads);
    packed.traverse(columns, out.shape(1), team, out.data());
  }

  void leaves(const Columns& columns, const Leaves& out, int n_threads) const {
    const std::size_t n_trees = packed.n_trees();
    require(out.shape(0) == columns.n_rows && out.shape(1) == n_trees,
            "out is not one column for each tree with the table's rows");
    std::int32_t* leaf = out.data();
    GilRelease release;
    Team team = team_for(columns.n_rows * n_trees, n_threads);
    packed.traverse_leaves(columns, n_trees, team, [&](const LeafBlock& block, int) {
      for (std::size_t row = block.begin; row < block.end; ++row)
        for (std::size_t t = 0; t < n_trees; ++t)
          leaf[row * n_trees + t] =
              static_cast<std::int32_t>(block.leaf[t * block.stride + (row - block.begin)]);
    });
  }

  ForestArrays arrays;
  PackedForest packed;
};

}  // namespace arboost::bindings
