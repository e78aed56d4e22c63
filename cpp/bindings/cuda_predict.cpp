// Bindings of prediction on CUDA devices.

#include <cstdint>
#include <span>
#include <string>

#include "bindings/common.h"
#include "bindings/cuda_forest.h"
#include "bindings/forest_arrays.h"
#include "predict/device/device_answers.h"

namespace arboost::bindings {
namespace {

using Bytes = Vector<std::uint8_t>;

cuda::DeviceForest::Combination combination(const Vector<double>& base, double mean_of,
                                            const Vector<double>& weights) {
  return {{base.data(), base.size()}, mean_of, {weights.data(), weights.size()}};
}

Team prediction_team(const KeptCudaForest& forest, const Columns& columns, int n_threads) {
  const std::size_t n_values = columns.n_rows * forest.made.trees().columns.size();
  return team_for(n_values, n_threads);
}

template <class Array>
cuda::RowSink host_sink(const Array& out) {
  return {.host = reinterpret_cast<std::byte*>(out.data())};
}

void host_scores(const KeptCudaForest& forest, const Columns& columns, const Vector<double>& base,
                 double mean_of, const Vector<double>& weights, const Scores& out, int n_threads) {
  require(out.shape(0) == columns.n_rows && out.shape(1) == forest.made.n_outputs(),
          "out is not one column for each output with the table's rows");
  const cuda::TableSource rows = forest.source(columns);
  GilRelease release;
  Team team = prediction_team(forest, columns, n_threads);
  forest.made.scores(rows, combination(base, mean_of, weights), team, host_sink(out));
}

void device_scores(const KeptCudaForest& forest, const cuda::DeviceColumns& columns,
                   const Vector<double>& base, double mean_of, const Vector<double>& weights,
                   std::uint64_t out) {
  const cuda::TableSource rows = forest.source(columns);
  GilRelease release;
  Team alone(1);
  forest.made.scores(rows, combination(base, mean_of, weights), alone, {.device = out});
}

void host_leaves(const KeptCudaForest& forest, const Columns& columns, const Leaves& out,
                 int n_threads) {
  require(out.shape(0) == columns.n_rows && out.shape(1) == forest.made.n_trees(),
          "out is not one column for each tree with the table's rows");
  const cuda::TableSource rows = forest.source(columns);
  GilRelease release;
  Team team = prediction_team(forest, columns, n_threads);
  forest.made.leaves(rows, team, host_sink(out));
}

void device_leaves(const KeptCudaForest& forest, const cuda::DeviceColumns& columns,
                   std::uint64_t out) {
  const cuda::TableSource rows = forest.source(columns);
  GilRelease release;
  Team alone(1);
  forest.made.leaves(rows, alone, {.device = out});
}

using ShapOut = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void host_shap(const KeptCudaForest& forest, nb::handle trees, const Columns& columns,
               const Vector<double>& divisors, const ShapOut& out, int n_threads) {
  require(out.shape(0) == columns.n_rows && out.shape(1) == forest.made.n_columns() &&
              out.shape(2) == forest.made.n_outputs(),
          "out is not features by outputs for each row");
  const cuda::TableSource rows = forest.source(columns);
  const cuda::DeviceShap& shap = forest.shap(trees, n_threads);
  GilRelease release;
  Team team = prediction_team(forest, columns, n_threads);
  shap.values(rows, {divisors.data(), divisors.size()}, team, host_sink(out));
}

void device_shap(const KeptCudaForest& forest, nb::handle trees, const cuda::DeviceColumns& columns,
                 const Vector<double>& divisors, std::uint64_t out, int n_threads) {
  const cuda::TableSource rows = forest.source(columns);
  const cuda::DeviceShap& shap = forest.shap(trees, n_threads);
  GilRelease release;
  Team alone(1);
  shap.values(rows, {divisors.data(), divisors.size()}, alone, {.device = out});
}

void link(const std::string& name, std::uint64_t raw, std::size_t stride, std::size_t n_outputs,
          std::size_t n_rows, std::uint64_t out, int device) {
  const cuda::RawRows rows{raw, stride, n_outputs, n_rows};
  GilRelease release;
  cuda::Device& where = cuda::Device::number(device);
  if (name == "ordered") return cuda::sort_on_device(where, rows, out);
  const Link which = link_of(name);
  answer_width(which, n_outputs);  // checks them
  cuda::link_on_device(where, which, rows, out);
}

void labels(std::uint64_t raw, std::size_t stride, std::size_t n_outputs, std::size_t n_rows,
            const Bytes& all, std::size_t bytes, std::size_t out_stride, std::uint64_t out,
            int device) {
  require(bytes > 0 && all.size() >= bytes * (n_outputs == 1 ? 2 : n_outputs),
          "fewer labels than outputs");
  GilRelease release;
  cuda::label_on_device(cuda::Device::number(device), {raw, stride, n_outputs, n_rows},
                        std::as_bytes(std::span(all.data(), all.size())), bytes, out_stride, out);
}

}  // namespace

void bind_cuda_predict(nb::module_& m) {
  nb::class_<KeptCudaForest>(m, "CudaForest", "A forest in the memory of a CUDA device.")
      .def(nb::init<nb::handle, std::size_t, std::size_t, int>(), "forest"_a, "n_columns"_a,
           "n_outputs"_a, "device"_a)
      .def("scores", &host_scores, "columns"_a, "base"_a, "mean_of"_a, "weights"_a,
           "out"_a.noconvert(), "n_threads"_a,
           "Writes raw scores to out[row][output]: sums where mean_of is 0, weighted medians where "
           "there are weights.")
      .def("scores", &device_scores, "columns"_a, "base"_a, "mean_of"_a, "weights"_a, "out"_a,
           "The same of a table and to an address on the device.")
      .def("leaves", &host_leaves, "columns"_a, "out"_a.noconvert(), "n_threads"_a,
           "Writes to out[row][tree] the leaf of the row, as a node of its tree.")
      .def("leaves", &device_leaves, "columns"_a, "out"_a,
           "The same of a table and to an address on the device.")
      .def("shap_values", &host_shap, "forest"_a, "columns"_a, "divisors"_a, "out"_a.noconvert(),
           "n_threads"_a,
           "Writes SHAP values to out[row][feature][output], divided by the outputs' divisors. "
           "`forest` is that of the constructor.")
      .def("shap_values", &device_shap, "forest"_a, "columns"_a, "divisors"_a, "out"_a,
           "n_threads"_a, "The same of a table and to an address on the device.");
  m.def("cuda_link", &link, "name"_a, "raw"_a, "stride"_a, "n_outputs"_a, "n_rows"_a, "out"_a,
        "device"_a, "Applies a link to raw scores on the device.");
  m.def("cuda_labels", &labels, "raw"_a, "stride"_a, "n_outputs"_a, "n_rows"_a, "labels"_a,
        "bytes"_a, "out_stride"_a, "out"_a, "device"_a,
        "Writes the label of the highest score of each row.");
}

}  // namespace arboost::bindings
