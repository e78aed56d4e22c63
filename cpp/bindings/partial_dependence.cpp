// Bindings of partial dependence on a grid of one or two features.
#include "explain/partial_dependence.h"

#include <vector>

#include "bindings/common.h"
#include "bindings/forest_arrays.h"

namespace arboost::bindings {
namespace {

using Answers = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// A forest on a grid, and the arrays that it views.
class KeptGrid {
 public:
  KeptGrid(nb::handle forest, std::size_t n_columns, std::size_t n_outputs,
           const std::vector<std::size_t>& features, const std::vector<Vector<double>>& values)
      : arrays_(forest),
        cover_(array_attribute<Vector<double>>(forest, "cover")),
        values_(values),
        n_columns_(n_columns),
        n_outputs_(n_outputs),
        axes_(axes(features, values)),
        grid_forest_(arrays_.views(), axes_, n_columns, n_outputs) {
    require(cover_.size() == arrays_.left.size(), "the forest's arrays differ in length");
  }

  void of_rows(const Columns& columns, std::size_t begin, const Answers& out, int n_threads) const {
    require(columns.columns.size() == n_columns_,
            "another number of columns than the grid was made for");
    check(out);
    const std::size_t n_rows = out.shape(0);
    GilRelease release;
    Team team = team_for(n_rows * arrays_.output.size(), n_threads);
    partial_of_rows(columns, begin, begin + n_rows, grid_forest_, n_outputs_, team, out.data());
  }

  void of_trees(const Answers& out) const {
    check(out);
    require(out.shape(0) == 1, "out has not one row");
    GilRelease release;
    partial_of_trees(grid_forest_, {cover_.data(), cover_.size()}, n_outputs_, out.data());
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

  ForestArrays arrays_;
  Vector<double> cover_;
  std::vector<Vector<double>> values_;
  std::size_t n_columns_, n_outputs_;
  std::vector<Axis> axes_;
  GridForest grid_forest_;
};

}  // namespace

void bind_partial_dependence(nb::module_& m) {
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
