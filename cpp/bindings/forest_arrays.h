// arboost.models.Forest -> views of its arrays for the core. No copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bindings/common.h"
#include "tree/forest.h"

namespace arboost::bindings {

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

}  // namespace arboost::bindings
