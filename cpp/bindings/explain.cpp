// Bindings of SHAP values.

#include <cstdint>
#include <span>
#include <stdexcept>  // invalid_argument

#include "bindings/common.h"
#include "bindings/forest_arrays.h"
#include "explain/shap/shap.h"
#include "table/columns.h"

namespace arboost::bindings {
namespace {

template <int dimensions>
using Out = nb::ndarray<double, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// A checked forest and the arrays that it views.
struct KeptShapForest {
  KeptShapForest(nb::handle forest, std::size_t n_features, std::size_t n_outputs)
      : arrays(forest),
        cover(array_attribute<Vector<double>>(forest, "cover")),
        checked(arrays.views(), covers(), n_features, n_outputs) {}

  std::span<const double> covers() const {
    require(cover.size() == arrays.left.size(), "the forest's arrays differ in length");
    return {cover.data(), cover.size()};
  }

  Owned<double> expected() const {
    std::vector<double> means(checked.n_outputs, 0.0);
    shap_expected(checked, means.data());
    return to_numpy(std::move(means));
  }

  void values(const Columns& columns, const Out<3>& out, int n_threads) const {
    require_values(columns, out);
    GilRelease release;
    Team team = team_for(columns.n_rows * shap_cells(checked), n_threads);
    shap_values(columns, checked, team, out.data());
  }

  void against(const Columns& columns, const Columns& background, const Out<3>& out,
               int n_threads) const {
    require_values(columns, out);
    require_table(background, background.n_rows);
    if (background.n_rows == 0) throw std::invalid_argument("the background has no rows");
    GilRelease release;
    Team team = team_for(columns.n_rows * shap_cells(checked), n_threads);
    shap_against(columns, background, checked, team, out.data());
  }

  void interactions(const Columns& columns, const Out<4>& out, int n_threads) const {
    require_table(columns, out.shape(0));
    require(out.shape(1) == checked.n_features && out.shape(2) == checked.n_features &&
                out.shape(3) == checked.n_outputs,
            "out is not features by features by outputs for each row");
    GilRelease release;
    Team team = team_for(columns.n_rows * shap_cells(checked), n_threads);
    shap_interactions(columns, checked, team, out.data());
  }

  void require_values(const Columns& columns, const Out<3>& out) const {
    require_table(columns, out.shape(0));
    require(out.shape(1) == checked.n_features && out.shape(2) == checked.n_outputs,
            "out is not features by outputs for each row");
  }
  void require_table(const Columns& columns, std::size_t n_rows) const {
    require(columns.n_rows == n_rows, "out has another number of rows than the table");
    require(columns.columns.size() == checked.n_features,
            "the table has another number of columns than the forest");
  }

  ForestArrays arrays;
  Vector<double> cover;
  ShapForest checked;
};

}  // namespace

void bind_explain(nb::module_& m) {
  nb::class_<KeptShapForest>(m, "ShapForest", "A forest, prepared for SHAP values.")
      .def(nb::init<nb::handle, std::size_t, std::size_t>(), "forest"_a, "n_features"_a,
           "n_outputs"_a)
      .def("expected", &KeptShapForest::expected,
           "What the trees say where nothing is known of a row, for each output.")
      .def("values", &KeptShapForest::values, "columns"_a, "out"_a.noconvert(), "n_threads"_a,
           "Writes SHAP values to out[row][feature][output].")
      .def("against", &KeptShapForest::against, "columns"_a, "background"_a, "out"_a.noconvert(),
           "n_threads"_a,
           "Writes SHAP values against the rows of a background to out[row][feature][output].")
      .def("interactions", &KeptShapForest::interactions, "columns"_a, "out"_a.noconvert(),
           "n_threads"_a, "Writes SHAP interactions to out[row][feature][feature][output].");
}

}  // namespace arboost::bindings
