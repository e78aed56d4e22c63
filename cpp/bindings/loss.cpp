// Bindings of the gradients: Gradients, apply_loss, set_gradients.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "bindings/common.h"
#include "loss/apply.h"

namespace arboost::bindings {
namespace {

using Scores = Array<double, nb::ndim<2>>;

Loss loss_named(const std::string& name) {
  if (name == "squared_error") return Loss::squared_error;
  if (name == "logistic") return Loss::logistic;
  if (name == "softmax") return Loss::softmax;
  throw std::invalid_argument("unknown loss '" + name + "'");
}

void check_length(std::size_t given, std::size_t wanted, const char* what) {
  if (given != wanted)
    throw std::invalid_argument(std::string(what) + " has length " + std::to_string(given) +
                                ", expected " + std::to_string(wanted));
}

void apply_loss_to(const std::string& loss, const Vector<double>& y,
                   const std::optional<Vector<double>>& weight, const Scores& scores,
                   Gradients& out, int n_threads) {
  check_length(y.shape(0), out.n_rows, "y");
  if (weight) check_length(weight->shape(0), out.n_rows, "weight");
  check_length(scores.shape(0), out.n_rows, "scores");
  check_length(scores.shape(1), out.outputs, "a row of scores");
  const Loss which = loss_named(loss);
  const double* weights = weight ? weight->data() : nullptr;
  nb::gil_scoped_release release;
  Team team(threads_for(8 * out.n_rows * out.outputs, n_threads), python_poll());
  apply_loss(which, y.data(), weights, scores.data(), out, team);
}

void set_gradients(const Scores& g, const Scores& h, Gradients& out, int n_threads) {
  for (const Scores& array : {g, h}) {
    check_length(array.shape(0), out.n_rows, "gradients");
    check_length(array.shape(1), out.outputs, "a row of gradients");
  }
  nb::gil_scoped_release release;
  Team team(threads_for(out.n_rows * out.outputs, n_threads), python_poll());
  apply_loss(Loss::given, g.data(), h.data(), nullptr, out, team);
}

}  // namespace

void bind_loss(nb::module_& m) {
  nb::class_<Gradients>(m, "Gradients", "Fixed-point gradients and hessians of one round.")
      .def(nb::init<std::size_t, std::size_t, bool>(), nb::arg("n_rows"), nb::arg("n_outputs"),
           nb::arg("by_row"))
      .def_ro("n_rows", &Gradients::n_rows)
      .def_ro("n_outputs", &Gradients::outputs)
      .def_ro("g_exponent", &Gradients::g_exponent)
      .def_ro("h_exponent", &Gradients::h_exponent)
      .def(
          "to_numpy",
          [](const Gradients& self) {
            auto* copy = new std::int32_t[self.n_rows * self.outputs * 2];
            nb::capsule owner(copy,
                              [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
            for (std::size_t i = 0; i < self.n_rows; ++i)
              for (std::size_t k = 0; k < self.outputs; ++k) {
                const FixedPair pair = self.pairs[i * self.row_stride() + k * self.output_stride()];
                copy[(i * self.outputs + k) * 2] = pair.g;
                copy[(i * self.outputs + k) * 2 + 1] = pair.h;
              }
            return nb::ndarray<nb::numpy, std::int32_t, nb::ndim<3>>(
                copy, {self.n_rows, self.outputs, 2}, owner);
          },
          "A copy of the integers, shape (n_rows, n_outputs, 2).");
  m.def("apply_loss", &apply_loss_to, nb::arg("loss"), nb::arg("y"), nb::arg("weight").none(),
        nb::arg("scores"), nb::arg("out"), nb::arg("n_threads"),
        "Fills `out` with the gradients of a loss at the scores.");
  m.def("set_gradients", &set_gradients, nb::arg("g"), nb::arg("h"), nb::arg("out"),
        nb::arg("n_threads"), "Fills `out` from arrays of gradients and hessians.");
}

}  // namespace arboost::bindings
