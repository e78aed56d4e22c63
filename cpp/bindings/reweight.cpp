// Bindings of AdaBoost's distributions over rows.
#include "reweight/reweight.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <stdexcept>

#include "bindings/loss_rows.h"

namespace arboost::bindings {
namespace {

using Scores = GivenScores;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require_rows(std::size_t n_rows) {
  if (n_rows == 0) throw std::invalid_argument("there is no row");
}

void require_apart(const double* out, std::initializer_list<const double*> read) {
  for (const double* array : read)
    if (array == out)
      throw std::invalid_argument("the array to be written is one of those that are read");
}

LossRows rows_of(const Vector<double>& y, const std::optional<Vector<double>>& weight,
                 const Scores& scores) {
  const std::size_t n_rows = y.shape(0);
  require_rows(n_rows);
  return loss_rows(y, weight, scores, n_rows);
}

std::pair<double, double> distribution(const Vector<double>& y,
                                       const std::optional<Vector<double>>& weight,
                                       const Scores& scores, Out out, int n_threads) {
  const LossRows rows = rows_of(y, weight, scores);
  check_length(out.shape(0), rows.n_rows, "out");
  require_apart(out.data(), {rows.y, rows.weight, rows.scores});
  CallTeam team(8 * rows.n_rows * rows.outputs, n_threads);
  const ScoresOfClasses class_scores = class_distribution(rows, out.data(), team);
  return {class_scores.log_loss, class_scores.error};
}

double error_of(const Vector<double>& y, const Vector<double>& distribution, const Scores& votes,
                int n_threads) {
  const LossRows rows = rows_of(y, distribution, votes);
  CallTeam team(2 * rows.n_rows * rows.outputs, n_threads);
  return weighted_error(rows, team);
}

R2Loss r2_loss_named(const std::string& kind) {
  constexpr const char* names[] = {"linear", "square", "exponential"};
  return named<R2Loss>(names, kind,
                       "kind is '" + kind + "', not 'linear', 'square' or 'exponential'");
}

double losses_of(const Vector<double>& y, const Vector<double>& prediction,
                 const Vector<double>& distribution, const std::string& kind, Out out,
                 int n_threads) {
  const std::size_t n_rows = y.shape(0);
  require_rows(n_rows);
  check_length(prediction.shape(0), n_rows, "prediction");
  check_length(distribution.shape(0), n_rows, "distribution");
  check_length(out.shape(0), n_rows, "out");
  require_apart(out.data(), {y.data(), prediction.data(), distribution.data()});
  const R2Loss loss = r2_loss_named(kind);
  CallTeam team(8 * n_rows, n_threads);
  return r2_losses({y.data(), prediction.data(), {distribution.data(), n_rows}}, loss, out.data(),
                   team);
}

void reweight(const Vector<double>& losses, double log_beta_times_rate, Out distribution,
              int n_threads) {
  const std::size_t n_rows = losses.shape(0);
  require_rows(n_rows);
  check_length(distribution.shape(0), n_rows, "distribution");
  require_apart(distribution.data(), {losses.data()});
  CallTeam team(8 * n_rows, n_threads);
  r2_reweight(losses.data(), log_beta_times_rate, {distribution.data(), n_rows}, team);
}

}  // namespace

void bind_reweight(nb::module_& m) {
  m.def("class_distribution", &distribution, "y"_a, "weight"_a.none(), "scores"_a,
        "out"_a.noconvert(), "n_threads"_a,
        "Fills `out` with weight * exp(-margin), scaled to mean 1. Returns the log of the "
        "exponential loss, and the weighted error. Scores are "
        "one column, above 0 for class 1, or one for each class.");
  m.def("weighted_error", &error_of, "y"_a, "distribution"_a, "votes"_a, "n_threads"_a,
        "Weighted error of the votes under the distribution. Votes are one column, above 0 "
        "for class 1, or one for each class.");
  m.def("r2_losses", &losses_of, "y"_a, "prediction"_a, "distribution"_a, "kind"_a,
        "out"_a.noconvert(), "n_threads"_a,
        "Fills `out` with the losses of AdaBoost.R2: of d = |y - prediction| / the largest of the "
        "rows of nonzero weight, d (linear), d^2 (square) or 1 - exp(-d) (exponential). "
        "Returns their mean under the distribution, whatever its sum.");
  m.def("r2_reweight", &reweight, "losses"_a, "log_beta_times_rate"_a, "distribution"_a.noconvert(),
        "n_threads"_a,
        "Multiplies the distribution by exp(log_beta_times_rate * (1 - losses)), in place, and "
        "scales it to sum 1.");
}

}  // namespace arboost::bindings
