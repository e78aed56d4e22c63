// Bindings of evaluation sets on a CUDA device.
#include "grow/device/rounds/device_evaluation.h"

#include <nanobind/stl/optional.h>

#include "bindings/loss_names.h"
#include "bindings/tree_grower.h"

namespace arboost::bindings {
namespace {

using cuda::DeviceEvaluation;

void make(DeviceEvaluation* self, int device, const Codes& codes,
          const std::optional<RowIds>& table_rows, const Vector<double>& y,
          const std::optional<Vector<double>>& weight, const Scores& scores) {
  const std::span<const RowId> ids = checked_rows(table_rows, codes.n_rows);
  const std::size_t n = ids.empty() ? codes.n_rows : ids.size();
  require(y.size() == n && scores.shape(0) == n && scores.shape(1) > 0 &&
              (!weight || weight->size() == n),
          "y, weights and scores do not fit the rows");
  const LossRows rows{y.data(), weight ? weight->data() : nullptr, scores.data(), n,
                      scores.shape(1)};
  GilRelease release;
  new (self) DeviceEvaluation(device, codes, ids, rows);
}

void add(DeviceEvaluation& self, const TreeGrower& grower, std::size_t first, std::size_t n) {
  require(first + n <= grower.trees.n_trees() && self.outputs() % grower.trees.width == 0,
          "the trees do not exist, or do not fit the outputs");
  GilRelease release;
  self.add(grower.trees, first, n);
}

double mean_loss(DeviceEvaluation& self, const std::string& loss, std::vector<double> parameters) {
  const LossSpec spec{loss_named(loss), std::move(parameters)};
  require(spec.loss != Loss::given, "a loss without a value");
  GilRelease release;
  self.losses();
  self.start_loss(spec);
  return self.losses().front();
}

void check(const DeviceEvaluation& self, const Scores& scores) {
  require(scores.shape(0) == self.n_rows() && scores.shape(1) == self.outputs(),
          "these scores do not fit the rows and outputs");
}

}  // namespace

void bind_device_evaluation(nb::module_& m) {
  nb::class_<DeviceEvaluation>(m, "DeviceEvaluation",
                               "An evaluation set in the memory of a CUDA device.")
      .def("__init__", &make, nb::arg("device"), nb::arg("codes"), nb::arg("rows").none(),
           nb::arg("y"), nb::arg("weight").none(), nb::arg("scores").noconvert(),
           nb::keep_alive<1, 3>())
      .def("add", &add, nb::arg("grower"), nb::arg("first"), nb::arg("n_trees"),
           "Adds trees to the scores; those of a round are in the order of their outputs.")
      .def(
          "add_trees",
          [](DeviceEvaluation& self, const TreeGrower& grower, const Vector<std::uint32_t>& trees,
             const Vector<double>& factors, const Vector<std::uint32_t>& outputs) {
            const auto added = added_trees(grower, trees, factors, outputs, self.outputs());
            GilRelease release;
            self.add(grower.trees, added);
          },
          nb::arg("grower"), nb::arg("trees"), nb::arg("factors"), nb::arg("outputs"),
          "Adds trees in turn, each times its factor to its output.")
      .def("mean_loss", &mean_loss, nb::arg("loss"), nb::arg("parameters"),
           "The weighted mean loss at the scores, as `loss_value`.")
      .def(
          "set_scores",
          [](DeviceEvaluation& self, const Scores& scores) {
            check(self, scores);
            GilRelease release;
            self.set_scores(scores.data());
          },
          nb::arg("scores").noconvert(), "Replaces the scores.")
      .def(
          "fetch_scores",
          [](const DeviceEvaluation& self, const Scores& scores) {
            check(self, scores);
            GilRelease release;
            self.fetch_scores(scores.data());
          },
          nb::arg("scores").noconvert(), "Copies the scores to the host.");
}

}  // namespace arboost::bindings
