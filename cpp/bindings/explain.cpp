// Explanations of a model's scores.
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>  // invalid_argument

#include "bindings/common.h"
#include "explain/shap.h"
#include "table.h"

namespace arboost::bindings {
namespace {

template <int dimensions>
using Out = nb::ndarray<double, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// The arrays of an arboost.model.Forest that explanations look at.
struct ExplainedArrays {
  explicit ExplainedArrays(nb::handle forest)
      : tree_start(nb::cast<Vector<std::int64_t>>(forest.attr("tree_start"), false)),
        feature(nb::cast<Vector<std::int32_t>>(forest.attr("feature"), false)),
        threshold(nb::cast<Vector<double>>(forest.attr("threshold"), false)),
        left(nb::cast<Vector<std::int32_t>>(forest.attr("left"), false)),
        default_left(nb::cast<Vector<bool>>(forest.attr("default_left"), false)),
        level_set(nb::cast<Vector<std::int32_t>>(forest.attr("level_set"), false)),
        level_sets(nb::cast<Array<std::uint64_t, nb::ndim<2>>>(forest.attr("level_sets"), false)),
        value(nb::cast<Array<double, nb::ndim<2>>>(forest.attr("value"), false)),
        cover(nb::cast<Vector<double>>(forest.attr("cover"), false)),
        output(nb::cast<Vector<std::int32_t>>(forest.attr("output"), false)) {
    const std::size_t n_nodes = left.size();
    if (feature.size() != n_nodes || threshold.size() != n_nodes ||
        default_left.size() != n_nodes || level_set.size() != n_nodes ||
        value.shape(0) != n_nodes || cover.size() != n_nodes ||
        tree_start.size() != output.size() + 1 || level_sets.shape(1) != 4)
      throw std::invalid_argument("the forest's arrays differ in length");
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
  Vector<double> cover;
  Vector<std::int32_t> output;
};

// A checked forest and the arrays that it views.
struct KeptShapForest {
  KeptShapForest(nb::handle forest, std::size_t n_features, std::size_t n_outputs)
      : arrays(forest),
        checked(arrays.views(), {arrays.cover.data(), arrays.cover.size()}, n_features, n_outputs) {
  }

  Owned<double> expected() const {
    std::vector<double> means(checked.n_outputs, 0.0);
    shap_expected(checked, means.data());
    return to_numpy(std::move(means));
  }

  void values(const Columns& columns, const Out<3>& out, int n_threads) const {
    require_table(columns, out.shape(0));
    if (out.shape(1) != checked.n_features || out.shape(2) != checked.n_outputs)
      throw std::invalid_argument("out is not features by outputs for each row");
    nb::gil_scoped_release release;
    Team team(threads_for(columns.n_rows * shap_cells(checked), n_threads), python_poll());
    shap_values(columns, checked, team, out.data());
  }

  void against(const Columns& columns, const Columns& background, const Out<3>& out,
               int n_threads) const {
    require_table(columns, out.shape(0));
    require_table(background, background.n_rows);
    if (background.n_rows == 0) throw std::invalid_argument("a background without rows");
    if (out.shape(1) != checked.n_features || out.shape(2) != checked.n_outputs)
      throw std::invalid_argument("out is not features by outputs for each row");
    nb::gil_scoped_release release;
    Team team(threads_for(columns.n_rows * shap_cells(checked), n_threads), python_poll());
    shap_against(columns, background, checked, team, out.data());
  }

  void interactions(const Columns& columns, const Out<4>& out, int n_threads) const {
    require_table(columns, out.shape(0));
    if (out.shape(1) != checked.n_features || out.shape(2) != checked.n_features ||
        out.shape(3) != checked.n_outputs)
      throw std::invalid_argument("out is not features by features by outputs for each row");
    nb::gil_scoped_release release;
    Team team(threads_for(columns.n_rows * shap_cells(checked), n_threads), python_poll());
    shap_interactions(columns, checked, team, out.data());
  }

  void require_table(const Columns& columns, std::size_t n_rows) const {
    if (columns.n_rows != n_rows)
      throw std::invalid_argument("out has another number of rows than the table");
    if (columns.columns.size() != checked.n_features)
      throw std::invalid_argument("the table has another number of columns than the forest");
  }

  ExplainedArrays arrays;
  ShapForest checked;
};

}  // namespace

void bind_explain(nb::module_& m) {
  nb::class_<KeptShapForest>(m, "ShapForest", "The trees of a forest, ready to be explained.")
      .def(nb::init<nb::handle, std::size_t, std::size_t>(), nb::arg("forest"),
           nb::arg("n_features"), nb::arg("n_outputs"))
      .def("expected", &KeptShapForest::expected,
           "What the trees say where nothing is known of a row, for each output.")
      .def("values", &KeptShapForest::values, nb::arg("columns"), nb::arg("out").noconvert(),
           nb::arg("n_threads"), "Writes SHAP values to out[row][feature][output].")
      .def("against", &KeptShapForest::against, nb::arg("columns"), nb::arg("background"),
           nb::arg("out").noconvert(), nb::arg("n_threads"),
           "Writes SHAP values against the rows of a background to out[row][feature][output].")
      .def("interactions", &KeptShapForest::interactions, nb::arg("columns"),
           nb::arg("out").noconvert(), nb::arg("n_threads"),
           "Writes SHAP interactions to out[row][feature][feature][output].");
}

}  // namespace arboost::bindings
