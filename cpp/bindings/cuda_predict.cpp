// Bindings of prediction on CUDA devices.
#include <cstdint>
#include <memory>
#include <mutex>

#include "bindings/common.h"
#include "bindings/forests.h"
#include "explain/device/device_shap.h"
#include "predict/device/device_forest.h"

namespace arboost::bindings {
namespace {

using Bytes = Vector<std::uint8_t>;

// A forest on a CUDA device.
struct KeptCudaForest {
  KeptCudaForest(nb::handle forest, std::size_t n_columns, std::size_t n_outputs, int device)
      : made(device, ForestArrays(forest).views(), n_columns, n_outputs) {}

  cuda::TableSource source(const Columns& columns) const {
    check_columns(columns.columns.size());
    return cuda::host_source(columns, made.trees().columns.size());
  }
  cuda::TableSource source(const cuda::DeviceColumns& columns) const {
    check_columns(columns.columns.size());
    require(&cuda::Device::number(columns.device) == &made.device(),
            "the table is on another device than the forest");
    return cuda::device_source(columns);
  }

  void check_columns(std::size_t n) const {
    require(n == made.n_columns(), "the table has another number of columns than the forest");
  }

  // SHAP programs, prepared by the first call from the same forest.
  const cuda::DeviceShap& shap(nb::handle forest, int n_threads) const {
    const CoveredForest arrays(forest);
    require(arrays.output.size() == made.n_trees(), "another forest than that on the device");
    GilRelease release;
    std::lock_guard lock(mutex);
    if (shap_programs == nullptr) {
      const ShapForest checked(arrays.views(), span_of(arrays.cover), made.n_columns(),
                               made.n_outputs());
      Team team = team_for(128 * arrays.left.size(), n_threads);
      shap_programs = std::make_unique<cuda::DeviceShap>(made, checked, team);
    }
    return *shap_programs;
  }

  cuda::DeviceForest made;
  mutable std::mutex mutex;
  mutable std::unique_ptr<const cuda::DeviceShap> shap_programs;  // is destroyed first
};

// Where results of a call go, and its team: an array of the host, of one row for each row of the
// table and of these further sizes, or an address of the device, whose tables no thread reads.
template <class Array>
cuda::RowSink sink_of(const Columns& columns, const Array& out,
                      std::initializer_list<std::size_t> sizes, const char* wanted) {
  bool fits = out.shape(0) == columns.n_rows;
  for (std::size_t i = 0; i < sizes.size(); ++i) fits &= out.shape(i + 1) == sizes.begin()[i];
  require(fits, wanted);
  return {.host = reinterpret_cast<std::byte*>(out.data())};
}
cuda::RowSink sink_of(const cuda::DeviceColumns&, std::uint64_t out,
                      std::initializer_list<std::size_t>, const char*) {
  return {.device = out};
}
std::size_t cells_of(const KeptCudaForest& forest, const Columns& columns) {
  return columns.n_rows * forest.made.trees().columns.size();
}
std::size_t cells_of(const KeptCudaForest&, const cuda::DeviceColumns&) {
  return 0;
}

template <class Table, class Out>
void scores(const KeptCudaForest& forest, const Table& columns, const Vector<double>& base,
            double mean_of, const Vector<double>& weights, const Out& out, int n_threads) {
  const cuda::RowSink sink = sink_of(columns, out, {forest.made.n_outputs()},
                                     "out is not one column for each output with the table's rows");
  const cuda::TableSource rows = forest.source(columns);
  CallTeam team(cells_of(forest, columns), n_threads);
  forest.made.scores(rows, {span_of(base), mean_of, span_of(weights)}, team, sink);
}

template <class Table, class Out>
void leaves(const KeptCudaForest& forest, const Table& columns, const Out& out, int n_threads) {
  const cuda::RowSink sink = sink_of(columns, out, {forest.made.n_trees()},
                                     "out is not one column for each tree with the table's rows");
  const cuda::TableSource rows = forest.source(columns);
  CallTeam team(cells_of(forest, columns), n_threads);
  forest.made.leaves(rows, team, sink);
}

using ShapOut = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class Table, class Out>
void shap(const KeptCudaForest& forest, nb::handle trees, const Table& columns,
          const Vector<double>& divisors, const Out& out, int n_threads) {
  const cuda::RowSink sink =
      sink_of(columns, out, {forest.made.n_columns(), forest.made.n_outputs()},
              "out is not features by outputs for each row");
  const cuda::TableSource rows = forest.source(columns);
  const cuda::DeviceShap& programs = forest.shap(trees, n_threads);
  CallTeam team(cells_of(forest, columns), n_threads);
  programs.values(rows, span_of(divisors), team, sink);
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
      .def("scores", &scores<Columns, Scores>, "columns"_a, "base"_a, "mean_of"_a, "weights"_a,
           "out"_a.noconvert(), "n_threads"_a,
           "Writes raw scores to out[row][output]: sums where mean_of is 0, weighted medians where "
           "there are weights.")
      .def("scores", &scores<cuda::DeviceColumns, std::uint64_t>, "columns"_a, "base"_a,
           "mean_of"_a, "weights"_a, "out"_a, "n_threads"_a = 1,
           "The same of a table and to an address on the device.")
      .def("leaves", &leaves<Columns, Leaves>, "columns"_a, "out"_a.noconvert(), "n_threads"_a,
           "Writes to out[row][tree] the leaf of the row, as a node of its tree.")
      .def("leaves", &leaves<cuda::DeviceColumns, std::uint64_t>, "columns"_a, "out"_a,
           "n_threads"_a = 1, "The same of a table and to an address on the device.")
      .def("shap_values", &shap<Columns, ShapOut>, "forest"_a, "columns"_a, "divisors"_a,
           "out"_a.noconvert(), "n_threads"_a,
           "Writes SHAP values to out[row][feature][output], divided by the outputs' divisors. "
           "`forest` is that of the constructor.")
      .def("shap_values", &shap<cuda::DeviceColumns, std::uint64_t>, "forest"_a, "columns"_a,
           "divisors"_a, "out"_a, "n_threads"_a,
           "The same of a table and to an address on the device.");
  m.def("cuda_link", &link, "name"_a, "raw"_a, "stride"_a, "n_outputs"_a, "n_rows"_a, "out"_a,
        "device"_a, "Applies a link to raw scores on the device.");
  m.def("cuda_labels", &labels, "raw"_a, "stride"_a, "n_outputs"_a, "n_rows"_a, "labels"_a,
        "bytes"_a, "out_stride"_a, "out"_a, "device"_a,
        "Writes the label of the highest score of each row.");
}

}  // namespace arboost::bindings
