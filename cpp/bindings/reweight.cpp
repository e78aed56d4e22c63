// Bindings of the distributions over rows.
#include "reweight/reweight.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>  // pair

#include "bindings/common.h"

namespace arboost::bindings {
namespace {

using Scores = Array<double, nb::ndim<2>>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_length(std::size_t given, std::size_t wanted, const char* what) {
  if (given != wanted)
    throw std::invalid_argument(std::string(what) + " has length " + std::to_string(given) +
                                ", expected " + std::to_string(wanted));
}

LossRows rows_of(const Vector<double>& y, const std::optional<Vector<double>>& weight,
                 const Scores& scores) {
  const std::size_t n_rows = y.shape(0);
  if (n_rows == 0) throw std::invalid_argument("there is no row");
  if (scores.shape(1) == 0) throw std::invalid_argument("the scores have no column");
  if (weight) check_length(weight->shape(0), n_rows, "weight");
  check_length(scores.shape(0), n_rows, "scores");
  return {y.data(), weight ? weight->data() : nullptr, scores.data(), n_rows, scores.shape(1)};
}

std::pair<double, double> distribution(const Vector<double>& y,
                                       const std::optional<Vector<double>>& weight,
                                       const Scores& scores, Out out, int n_threads) {
  const LossRows rows = rows_of(y, weight, scores);
  check_length(out.shape(0), rows.n_rows, "out");
  for (const double* read : {rows.y, rows.weight, rows.scores})
    if (read == out.data()) throw std::invalid_argument("`out` is one of the arrays that are read");
  nb::gil_scoped_release release;
  Team team(threads_for(8 * rows.n_rows * rows.outputs, n_threads), python_poll());
  const ScoresOfClasses found = class_distribution(rows, out.data(), team);
  return {found.log_loss, found.error};
}

double error_of(const Vector<double>& y, const Vector<double>& distribution, const Scores& votes,
                int n_threads) {
  const LossRows rows = rows_of(y, distribution, votes);
  nb::gil_scoped_release release;
  Team team(threads_for(2 * rows.n_rows * rows.outputs, n_threads), python_poll());
  return weighted_error(rows, team);
}

}  // namespace

void bind_reweight(nb::module_& m) {
  m.def("class_distribution", &distribution, nb::arg("y"), nb::arg("weight").none(),
        nb::arg("scores"), nb::arg("out").noconvert(), nb::arg("n_threads"),
        "Fills `out` with weight * exp(-margin), scaled to mean 1. Returns the log of the "
        "exponential loss, and the weighted share of rows whose class the scores miss. Scores are "
        "one column, above 0 for class 1, or one for each class.");
  m.def("weighted_error", &error_of, nb::arg("y"), nb::arg("distribution"), nb::arg("votes"),
        nb::arg("n_threads"),
        "The share of the distribution on rows whose class the votes miss: one column, above 0 "
        "for class 1, or one for each class.");
}

}  // namespace arboost::bindings
