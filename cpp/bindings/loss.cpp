// Bindings of the losses: gradients, mean losses, leaf values by quantiles.
#include <nanobind/stl/optional.h>

#include <cmath>  // isfinite
#include <limits>
#include <stdexcept>

#include "base/require.h"
#include "bindings/common.h"
#include "bindings/loss_rows.h"
#include "loss/apply.h"
#include "loss/elementary.h"
#include "loss/leaf.h"

namespace arboost::bindings {

Loss loss_named(const std::string& name) {
  constexpr const char* names[] = {"squared_error", "absolute_error", "huber",      "quantile",
                                   "poisson",       "gamma",          "tweedie",    "logistic",
                                   "softmax",       "one_hot",        "exponential"};
  return named<Loss>(names, name, "unknown loss '" + name + "'");
}

void check_length(std::size_t given, std::size_t wanted, const char* what) {
  if (given != wanted)
    throw std::invalid_argument(std::string(what) + " has length " + std::to_string(given) +
                                ", expected " + std::to_string(wanted));
}

LossRows loss_rows(const Vector<double>& y, const Weights& weight,
                   const std::optional<GivenScores>& scores, std::size_t n_rows) {
  check_length(y.shape(0), n_rows, "y");
  if (weight) check_length(weight->shape(0), n_rows, "weight");
  if (scores) check_length(scores->shape(0), n_rows, "scores");
  require(!scores || scores->shape(1) > 0, "the scores have no columns");
  return {y.data(), weight ? weight->data() : nullptr, scores ? scores->data() : nullptr, n_rows,
          scores ? scores->shape(1) : 1};
}

namespace {

using Scores = GivenScores;

std::size_t cells_of(const LossRows& rows) {
  return 8 * rows.n_rows * rows.outputs;
}

void apply_loss_to(const std::string& loss, const Vector<double>& y, const Weights& weight,
                   const std::optional<Scores>& scores, Gradients& out, int n_threads,
                   std::vector<double> parameters, bool least_squares,
                   std::optional<double> weight_bound) {
  if (scores) check_length(scores->shape(1), out.outputs, "a row of scores");
  LossRows rows = loss_rows(y, weight, scores, out.n_rows);
  rows.outputs = out.outputs;
  const LossSpec spec{loss_named(loss), std::move(parameters), least_squares};
  CallTeam team(cells_of(rows), n_threads);
  const double bound = weight_bound ? *weight_bound : max_weight(rows.weight, rows.n_rows, team);
  apply_loss(spec, rows, bound, out, team);
}

void set_gradients(const Scores& g, const Scores& h, Gradients& out, int n_threads) {
  for (const Scores& array : {g, h}) {
    check_length(array.shape(0), out.n_rows, "gradients");
    check_length(array.shape(1), out.outputs, "a row of gradients");
  }
  const LossRows rows{g.data(), h.data(), nullptr, out.n_rows, out.outputs};
  CallTeam team(cells_of(rows) / 8, n_threads);
  apply_loss({Loss::given}, rows, 1.0, out, team);
}

double loss_value(const std::string& loss, const Vector<double>& y, const Weights& weight,
                  const Scores& scores, int n_threads, std::vector<double> parameters) {
  const LossRows rows = loss_rows(y, weight, scores, y.shape(0));
  const LossSpec spec{loss_named(loss), std::move(parameters)};
  CallTeam team(cells_of(rows), n_threads);
  return mean_loss(spec, rows, team);
}

void check_share(double alpha) {
  require(alpha >= 0 && alpha <= 1, "alpha is not between 0 and 1");
}

Owned<double> refit(const Vector<double>& y, const Weights& weight, const Scores& scores,
                    std::size_t output, const Vector<std::uint32_t>& leaf, std::size_t n_nodes,
                    int n_threads, double alpha, std::optional<double> delta) {
  const LossRows rows = loss_rows(y, weight, scores, y.shape(0));
  if (output >= rows.outputs)
    throw std::invalid_argument("there is no output " + std::to_string(output) + " of " +
                                std::to_string(rows.outputs));
  check_length(leaf.shape(0), rows.n_rows, "leaf");
  require(rows.n_rows > 0, "there is no row");
  check_share(alpha);
  require(!delta || std::isfinite(*delta), "delta is not finite");
  return to_numpy(with_team(cells_of(rows), n_threads, [&](Team& team) {
    Buffer<std::uint8_t> space;
    return refit_leaves(rows, output, leaf.data(), n_nodes, {alpha, delta}, space, team);
  }));
}

double quantile(const Vector<double>& y, const Weights& weight, const std::optional<Scores>& scores,
                double alpha, bool absolute, int n_threads) {
  check_share(alpha);
  const LossRows rows = loss_rows(y, weight, scores, y.shape(0));
  CallTeam team(cells_of(rows), n_threads);
  return residual_quantile(rows, alpha, absolute, team);
}

// A function of numbers, for arrays of any shape and for single numbers.
template <auto replace>
void bind_function(nb::module_& m, const char* name, const char* description) {
  using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
  m.def(
      name,
      [](double x) {
        replace(&x, 1);
        return x;
      },
      "x"_a, description);
  m.def(
      name,
      [](const Numbers& x) {
        auto* values = new std::vector<double>(x.data(), x.data() + x.size());
        nb::capsule owner(values,
                          [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
        std::vector<std::size_t> shape;
        for (std::size_t i = 0; i < x.ndim(); ++i) shape.push_back(x.shape(i));
        replace(values->data(), values->size());
        return nb::ndarray<nb::numpy, double>(values->data(), shape.size(), shape.data(), owner);
      },
      "x"_a);
}

}  // namespace

void bind_loss(nb::module_& m) {
  bind_function<exponentials>(m, "exp", "e^x, the same bits on every machine.");
  bind_function<logarithms>(m, "log", "log x, the same bits on every machine; -inf for 0.");
  bind_function<logarithms_of_one_plus>(m, "log1p", "log(1 + x), the same bits on every machine.");
  nb::class_<Gradients>(m, "Gradients", "Fixed-point gradients and hessians of one round.")
      .def(
          "__init__",
          [](Gradients* self, std::size_t n_rows, std::size_t n_outputs, bool by_row) {
            constexpr std::size_t most_outputs = std::numeric_limits<std::int32_t>::max();
            check_row_count(n_rows);
            require(n_outputs > 0 && n_outputs <= most_outputs, "a row needs an output");
            new (self) Gradients(n_rows, n_outputs, by_row);
          },
          "n_rows"_a, "n_outputs"_a, "by_row"_a)
      .def_ro("n_rows", &Gradients::n_rows)
      .def_ro("n_outputs", &Gradients::outputs)
      .def_ro("g_exponent", &Gradients::g_exponent)
      .def_ro("h_exponent", &Gradients::h_exponent)
      .def(
          "to_numpy",
          [](const Gradients& self) {
            require(self.is_filled, "the gradients have not been computed");
            std::vector<std::int32_t> copy(self.n_rows * self.outputs * 2);
            for (std::size_t i = 0; i < self.n_rows; ++i)
              for (std::size_t k = 0; k < self.outputs; ++k) {
                const FixedPair pair = self.pairs[i * self.row_stride() + k * self.output_stride()];
                copy[(i * self.outputs + k) * 2] = pair.g;
                copy[(i * self.outputs + k) * 2 + 1] = pair.h;
              }
            return to_numpy<3>(std::move(copy), {self.n_rows, self.outputs, 2});
          },
          "A copy of the integers, shape (n_rows, n_outputs, 2).");
  m.def("apply_loss", &apply_loss_to, "loss"_a, "y"_a, "weight"_a.none(), "scores"_a.none(),
        "out"_a, "n_threads"_a, nb::kw_only(), "parameters"_a = std::vector<double>(),
        "least_squares"_a = false, "largest_weight"_a = nb::none(),
        "Fills `out` with the gradients of a loss at the scores; squared_error and one_hot take "
        "None for scores of 0. A given bound of the weights saves a pass over them.");
  m.def("set_gradients", &set_gradients, "g"_a, "h"_a, "out"_a, "n_threads"_a,
        "Fills `out` from arrays of gradients and hessians.");
  m.def("loss_value", &loss_value, "loss"_a, "y"_a, "weight"_a.none(), "scores"_a, "n_threads"_a,
        nb::kw_only(), "parameters"_a = std::vector<double>(),
        "The weighted mean of a loss over the rows (and the quantiles).");
  m.def("refit_leaves", &refit, "y"_a, "weight"_a.none(), "scores"_a, "output"_a, "leaf"_a,
        "n_nodes"_a, "n_threads"_a, nb::kw_only(), "alpha"_a, "delta"_a = nb::none(),
        "The quantile at alpha of the residuals in each leaf; with delta, Huber's leaf around it.");
  m.def("residual_quantile", &quantile, "y"_a, "weight"_a.none(), "scores"_a.none(), nb::kw_only(),
        "alpha"_a, "absolute"_a, "n_threads"_a,
        "The quantile at alpha of y - score, of |y - score|, or of y where scores is None.");
}

}  // namespace arboost::bindings
