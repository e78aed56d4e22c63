// Bindings of SHAP values, and of partial dependence on a grid of one or two features.
#include <stdexcept>  // invalid_argument

#include "bindings/common.h"
#include "bindings/forests.h"
#include "explain/partial_dependence.h"
#include "explain/shap/shap.h"
#include "table/columns.h"

namespace arboost::bindings {
namespace {

template <int dimensions>
using Out = nb::ndarray<double, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

// A checked forest and the arrays that it views.
struct KeptShapForest {
  KeptShapForest(nb::handle forest, std::size_t n_features, std::size_t n_outputs)
      : arrays(forest), checked(arrays.views(), span_of(arrays.cover), n_features, n_outputs) {}

  Owned<double> expected() const {
    std::vector<double> means(checked.n_outputs, 0.0);
    shap_expected(checked, means.data());
    return to_numpy(std::move(means));
  }

  void values(const Columns& columns, const Out<3>& out, int n_threads) const {
    require_values(columns, out);
    CallTeam team(columns.n_rows * shap_cells(checked), n_threads);
    shap_values(columns, checked, team, out.data());
  }

  void against(const Columns& columns, const Columns& background, const Out<3>& out,
               int n_threads) const {
    require_values(columns, out);
    require_table(background, background.n_rows);
    if (background.n_rows == 0) throw std::invalid_argument("the background has no rows");
    CallTeam team(columns.n_rows * shap_cells(checked), n_threads);
    shap_against(columns, background, checked, team, out.data());
  }

  void interactions(const Columns& columns, const Out<4>& out, int n_threads) const {
    require_table(columns, out.shape(0));
    require(out.shape(1) == checked.n_features && out.shape(2) == checked.n_features &&
                out.shape(3) == checked.n_outputs,
            "out is not features by features by outputs for each row");
    CallTeam team(columns.n_rows * shap_cells(checked), n_threads);
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

  CoveredForest arrays;
  ShapForest checked;
};

using Answers = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// A forest on a grid, and the arrays that it views.
class KeptGrid {
 public:
  KeptGrid(nb::handle forest, std::size_t n_columns, std::size_t n_outputs,
           const std::vector<std::size_t>& features, const std::vector<Vector<double>>& values)
      : arrays_(forest),
        values_(values),
        n_columns_(n_columns),
        n_outputs_(n_outputs),
        axes_(axes(features, values)),
        grid_forest_(arrays_.views(), axes_, n_columns, n_outputs) {}

  void of_rows(const Columns& columns, std::size_t begin, const Answers& out, int n_threads) const {
    require(columns.columns.size() == n_columns_,
            "another number of columns than the grid was made for");
    check(out);
    const std::size_t n_rows = out.shape(0);
    CallTeam team(n_rows * arrays_.output.size(), n_threads);
    partial_of_rows(columns, begin, begin + n_rows, grid_forest_, n_outputs_, team, out.data());
  }

  void of_trees(const Answers& out) const {
    check(out);
    require(out.shape(0) == 1, "out has not one row");
    GilRelease release;
    partial_of_trees(grid_forest_, span_of(arrays_.cover), n_outputs_, out.data());
  }

 private:
  static std::vector<Axis> axes(const std::vector<std::size_t>& features,
                                const std::vector<Vector<double>>& values) {
    require(features.size() == values.size(), "another number of features than of lists of values");
    std::vector<Axis> result;
    for (std::size_t i = 0; i < features.size(); ++i)
      result.push_back({features[i], {values[i].data(), values[i].size()}});
    return result;
  }

  void check(const Answers& out) const {
    require(out.shape(1) == grid_forest_.n_points() && out.shape(2) == n_outputs_,
            "out has not the points of the grid and the outputs");
  }

  CoveredForest arrays_;
  std::vector<Vector<double>> values_;
  std::size_t n_columns_, n_outputs_;
  std::vector<Axis> axes_;
  GridForest grid_forest_;
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

  nb::class_<KeptGrid>(m, "GridForest", "A forest, prepared for one grid.")
      .def(nb::init<nb::handle, std::size_t, std::size_t, const std::vector<std::size_t>&,
                    const std::vector<Vector<double>>&>(),
           "forest"_a, "n_columns"_a, "n_outputs"_a, "features"_a, "values"_a)
      .def("of_rows", &KeptGrid::of_rows, "columns"_a, "begin"_a, "out"_a.noconvert(),
           "n_threads"_a,
           "Writes to out[row][point][output] the sum of the trees for the rows from `begin` on, "
           "with the values of each point.")
      .def("of_trees", &KeptGrid::of_trees, "out"_a.noconvert(),
           "Writes to out[0][point][output] the sum of the trees, with splits off the grid "
           "weighted by cover.");
}

}  // namespace arboost::bindings
