// arboost.models.Forest -> views of its arrays for the core, without a copy; and a packed forest
// that keeps them alive.
#pragma once

#include <cstdint>

#include "bindings/common.h"
#include "predict/packed_forest.h"
#include "tree/forest.h"

namespace arboost::bindings {

using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Leaves = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Arrays of an arboost.models.Forest, and their views.
struct ForestArrays {
  explicit ForestArrays(nb::handle forest)
      : tree_start(array_attribute<Vector<std::int64_t>>(forest, "tree_start")),
        feature(array_attribute<Vector<std::int32_t>>(forest, "feature")),
        threshold(array_attribute<Vector<double>>(forest, "threshold")),
        left(array_attribute<Vector<std::int32_t>>(forest, "left")),
        default_left(array_attribute<Vector<bool>>(forest, "default_left")),
        level_set(array_attribute<Vector<std::int32_t>>(forest, "level_set")),
        level_sets(array_attribute<Array<std::uint64_t, nb::ndim<2>>>(forest, "level_sets")),
        value(array_attribute<Array<double, nb::ndim<2>>>(forest, "value")),
        output(array_attribute<Vector<std::int32_t>>(forest, "output")) {
    const std::size_t n_nodes = left.size();
    require(feature.size() == n_nodes && threshold.size() == n_nodes &&
                default_left.size() == n_nodes && level_set.size() == n_nodes &&
                value.shape(0) == n_nodes && tree_start.size() == output.size() + 1 &&
                level_sets.shape(1) == 4,
            "the forest's arrays differ in length");
  }

  Forest views() const {
    return {.tree_start = {tree_start.data(), tree_start.size()},
            .feature = {feature.data(), feature.size()},
            .threshold = {threshold.data(), threshold.size()},
            .left = {left.data(), left.size()},
            .default_left = {reinterpret_cast<const std::uint8_t*>(default_left.data()),
                             default_left.size()},
            .level_set = {level_set.data(), level_set.size()},
            .level_sets = {level_sets.data(), level_sets.size()},
            .value = {value.data(), value.size()},
            .output = {output.data(), output.size()},
            .width = value.shape(1)};
  }

  Vector<std::int64_t> tree_start;
  Vector<std::int32_t> feature;
  Vector<double> threshold;
  Vector<std::int32_t> left;
  Vector<bool> default_left;
  Vector<std::int32_t> level_set;
  Array<std::uint64_t, nb::ndim<2>> level_sets;
  Array<double, nb::ndim<2>> value;
  Vector<std::int32_t> output;
};

// The same with the covers of the nodes.
struct CoveredForest : ForestArrays {
  explicit CoveredForest(nb::handle forest)
      : ForestArrays(forest), cover(array_attribute<Vector<double>>(forest, "cover")) {
    require(cover.size() == left.size(), "the forest's arrays differ in length");
  }

  Vector<double> cover;
};

// A packed forest and the arrays that it views.
struct KeptForest {
  KeptForest(nb::handle forest, std::size_t n_columns, std::size_t n_outputs)
      : arrays(forest), packed(arrays.views(), n_columns, n_outputs) {}

  void traverse(const Columns& columns, const Scores& out, int n_threads) const {
    require(out.shape(0) == columns.n_rows, "out has another number of rows than the table");
    CallTeam team(columns.n_rows * packed.n_trees(), n_threads);
    packed.traverse(columns, out.shape(1), team, out.data());
  }

  void leaves(const Columns& columns, const Leaves& out, int n_threads) const {
    const std::size_t n_trees = packed.n_trees();
    require(out.shape(0) == columns.n_rows && out.shape(1) == n_trees,
            "out is not one column for each tree with the table's rows");
    std::int32_t* leaf = out.data();
    CallTeam team(columns.n_rows * n_trees, n_threads);
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
