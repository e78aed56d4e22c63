// Bindings of prediction: traverse, leaves, weighted medians and quantiles of leaves.
#include <stdexcept>

#include "bindings/common.h"
#include "bindings/forests.h"
#include "predict/quantiles/tree_quantiles.h"
#include "predict/traverse.h"

namespace arboost::bindings {
namespace {

using Strided = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;

void traverse(const Columns& columns, nb::handle forest, const Scores& out, std::size_t tree_begin,
              std::size_t tree_end, int n_threads) {
  require(out.shape(0) == columns.n_rows, "out has another number of rows than the table");
  const ForestArrays arrays(forest);
  CallTeam team(columns.n_rows * (tree_end - tree_begin), n_threads);
  arboost::traverse(columns, arrays.views(), {tree_begin, tree_end}, out.shape(1), team,
                    out.data());
}

void traverse_median(const Columns& columns, nb::handle forest, const Vector<double>& weights,
                     const Scores& out, std::size_t tree_end, int n_threads) {
  require(out.shape(0) == columns.n_rows && out.shape(1) == 1,
          "out is not one column with the table's rows");
  if (tree_end > weights.size()) throw std::invalid_argument("trees without weights");
  const ForestArrays arrays(forest);
  CallTeam team(columns.n_rows * tree_end, n_threads);
  arboost::traverse_median(columns, arrays.views(), {weights.data(), tree_end}, team, out.data());
}

Owned<double> weighted_median(const Strided& values, const Vector<double>& weights, int n_threads) {
  require(values.shape(1) == weights.size(), "another number of weights than values in a row");
  std::vector<double> out(values.shape(0));
  without_gil([&] {
    Team team = team_for(values.size(), n_threads);
    arboost::weighted_median({.data = values.data(),
                              .n_rows = values.shape(0),
                              .row_stride = static_cast<std::ptrdiff_t>(values.stride(0)),
                              .column_stride = static_cast<std::ptrdiff_t>(values.stride(1))},
                             {weights.data(), weights.size()}, team, out.data());
  });
  return to_numpy(std::move(out));
}

// The arrays of an arboost.leaf_values.LeafDistributions.
struct DistributionArrays {
  explicit DistributionArrays(nb::handle distributions)
      : tree_start(array_attribute<Vector<std::int64_t>>(distributions, "tree_start")),
        start(array_attribute<Vector<std::int64_t>>(distributions, "start")),
        rank(array_attribute<Vector<std::int32_t>>(distributions, "rank")),
        upto(array_attribute<Vector<std::int64_t>>(distributions, "upto")),
        values(array_attribute<Vector<double>>(distributions, "values")) {}

  LeafDistributions views() const {
    return {.tree_start = {tree_start.data(), tree_start.size()},
            .start = {start.data(), start.size()},
            .rank = {rank.data(), rank.size()},
            .upto = {upto.data(), upto.size()},
            .values = {values.data(), values.size()}};
  }

  Vector<std::int64_t> tree_start, start;
  Vector<std::int32_t> rank;
  Vector<std::int64_t> upto;
  Vector<double> values;
};

// Cells of work: a quantile costs several steps for each tree.
std::size_t quantile_cells(const Scores& out, const LeafDistributions& distributions) {
  return 8 * out.size() * distributions.tree_start.size();
}

void traverse_quantiles(const Columns& columns, nb::handle forest, nb::handle distributions,
                        const Vector<double>& quantiles, const Scores& out, int n_threads) {
  const ForestArrays trees(forest);
  const DistributionArrays arrays(distributions);
  const LeafDistributions views = arrays.views();
  require(out.shape(0) == columns.n_rows && out.shape(1) == quantiles.size(),
          "out is not one column for each quantile with the table's rows");
  GilRelease release;
  validate(views);
  Team team = team_for(quantile_cells(out, views), n_threads);
  arboost::traverse_quantiles(columns, trees.views(), views, {quantiles.data(), quantiles.size()},
                              team, out.data());
}

}  // namespace

void bind_predict(nb::module_& m) {
  nb::class_<KeptForest>(m, "PackedForest", "A forest, prepared for prediction.")
      .def(nb::init<nb::handle, std::size_t, std::size_t>(), "forest"_a, "n_columns"_a,
           "n_outputs"_a)
      .def("traverse", &KeptForest::traverse, "columns"_a, "out"_a.noconvert(), "n_threads"_a,
           "Adds the values of all trees to out[row][output].")
      .def("leaves", &KeptForest::leaves, "columns"_a, "out"_a.noconvert(), "n_threads"_a,
           "Writes to out[row][tree] the leaf of the row, as a node of its tree.");
  m.def("traverse", &traverse, "columns"_a, "forest"_a, "out"_a.noconvert(), "tree_begin"_a,
        "tree_end"_a, "n_threads"_a, "Adds the values of a range of trees to out[row][output].");
  m.def("traverse_median", &traverse_median, "columns"_a, "forest"_a, "weights"_a,
        "out"_a.noconvert(), "tree_end"_a, "n_threads"_a,
        "Adds the weighted median of the first trees' values to out[row][0].");
  m.def("weighted_median", &weighted_median, "values"_a, "weights"_a, "n_threads"_a,
        "Weighted median of each row: its smallest value at which the weights, cumulated in the "
        "order of the values, reach half of their total. NaN values are left out.");
  m.def("traverse_quantiles", &traverse_quantiles, "columns"_a, "forest"_a, "distributions"_a,
        "quantiles"_a, "out"_a.noconvert(), "n_threads"_a,
        "Writes to out[row][i] a quantile of the values in the leaves that the row reaches.");
}

}  // namespace arboost::bindings
