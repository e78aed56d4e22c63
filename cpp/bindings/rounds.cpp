// Bindings of rounds of gradient boosting in one call.
#include "grow/rounds.h"

#include <algorithm>
#include <chrono>

#include "bindings/loss_names.h"
#include "bindings/tree_grower.h"
#include "grow/device/device_rows.h"
#include "grow/shards/share_rows.h"

namespace arboost::bindings {
namespace {

std::size_t run_with(WatchedSets& watched, TreeGrower& self, const RoundParams& params,
                     const Vector<double>& y, const std::optional<Vector<double>>& weight,
                     Scores scores, Gradients& gradients, std::size_t n_rounds, double seconds,
                     int n_threads) {
  const std::size_t n_rows = self.n_training(), outputs = scores.shape(1);
  self.check_shape(gradients, 0);
  self.check_scores(scores, n_rows, outputs - self.trees.width);
  require(gradients.outputs == outputs && y.shape(0) == n_rows &&
              (!weight || weight->shape(0) == n_rows),
          "y, weights, scores and gradients do not fit each other");
  require(n_rounds > 0 && params.loss.loss != Loss::given, "no rounds, or no loss");
  const RowSampling& sampling = params.sampling;
  for (const double share : {sampling.rate, sampling.top_rate, sampling.other_rate})
    require(share >= 0 && share <= 1, "a share of the rows is not between 0 and 1");
  require(sampling.reg_lambda >= 0, "reg_lambda is below 0");
  require(params.leaf_quantiles.empty() || params.leaf_quantiles.size() == outputs,
          "quantiles of another number of outputs");
  const LossRows rows{y.data(), weight ? weight->data() : nullptr, scores.data(), n_rows, outputs};
  GilRelease release;
  Team team = self.team(n_rows * self.codes.n_features, n_threads);
  const int for_loss = threads_for(8 * n_rows * outputs, n_threads);
  std::optional<Team> other;
  if (for_loss != team.size()) other.emplace(for_loss, python_poll());
  self.has_leaves = false;
  const std::size_t done =
      run_rounds(self.grower, params, rows, n_rounds, std::chrono::duration<double>(seconds),
                 {gradients, scores.data(), self.round_sample, self.trees}, watched,
                 other ? *other : team, team);
  self.has_leaves = true;
  return done;
}

std::size_t run(TreeGrower& self, const RoundParams& params, const Vector<double>& y,
                const std::optional<Vector<double>>& weight, Scores scores, Gradients& gradients,
                std::size_t n_rounds, double seconds, int n_threads) {
  WatchedSets none;
  return run_with(none, self, params, y, weight, scores, gradients, n_rounds, seconds, n_threads);
}

// The losses of each round, set and loss.
Owned<double, 3> run_watched(TreeGrower& self, const RoundParams& params, const Vector<double>& y,
                             const std::optional<Vector<double>>& weight, Scores scores,
                             Gradients& gradients, std::size_t n_rounds, double seconds,
                             int n_threads, std::vector<cuda::DeviceEvaluation*> sets,
                             const std::vector<std::string>& losses,
                             const std::vector<std::vector<double>>& parameters) {
  require(losses.size() == parameters.size(), "losses and parameters differ in number");
  WatchedSets watched{std::move(sets), {}, {}};
  for (const cuda::DeviceEvaluation* set : watched.sets)
    require(set != nullptr && set->outputs() == scores.shape(1), "a set of other outputs");
  for (std::size_t i = 0; i < losses.size(); ++i) {
    watched.losses.push_back({loss_named(losses[i]), parameters[i]});
    require(watched.losses.back().loss != Loss::given, "a loss without a value");
    check_parameters(watched.losses.back(), scores.shape(1));
  }
  const std::size_t done =
      run_with(watched, self, params, y, weight, scores, gradients, n_rounds, seconds, n_threads);
  return to_numpy<3>(std::move(watched.values), {done, watched.sets.size(), losses.size()});
}

// Gradients at the scores of the training rows, on the device of the grower.
void take_gradients(TreeGrower& self, const std::string& loss, std::vector<double> parameters,
                    double largest_weight, bool least_squares, const Vector<double>& y,
                    const std::optional<Vector<double>>& weight, const Scores& scores,
                    Gradients& out) {
  const std::size_t n_rows = self.n_training(), outputs = scores.shape(1);
  self.check_shape(out, 0);
  self.check_scores(scores, n_rows, outputs - self.trees.width);
  const LossSpec spec{loss_named(loss), std::move(parameters), least_squares};
  cuda::DeviceRows* device = self.grower.on_device();
  require(device != nullptr && spec.loss != Loss::given && out.outputs == outputs &&
              y.shape(0) == n_rows && (!weight || weight->shape(0) == n_rows),
          "no device or no loss, or y, weights, scores and gradients do not fit each other");
  GilRelease release;
  device->round().open(
      {y.data(), weight ? weight->data() : nullptr, scores.data(), n_rows, outputs});
  device->round().apply_loss(spec, largest_weight, out);
}

// The same scores for every row.
void fill_scores(const Vector<double>& of_row, const Scores& scores, int n_threads) {
  const std::size_t outputs = of_row.size();
  Team team(threads_for(8 * scores.shape(0) * outputs, n_threads), python_poll());
  team.for_chunks(0, scores.shape(0), 1 << 16, [&](std::size_t begin, std::size_t end, int) {
    if (outputs == 1) std::fill(scores.data() + begin, scores.data() + end, of_row.data()[0]);
    for (std::size_t i = begin; i < end && outputs > 1; ++i)
      std::copy(of_row.data(), of_row.data() + outputs, scores.data() + i * outputs);
  });
}

}  // namespace

void bind_rounds(nb::module_& m, nb::class_<TreeGrower>& grower) {
  nb::enum_<RowSampling::Method>(m, "SamplingMethod", "Choice of the rows of a tree.")
      .value("uniform", RowSampling::Method::uniform)
      .value("gradient_based", RowSampling::Method::gradient_based)
      .value("goss", RowSampling::Method::goss);
  nb::class_<RowSampling> row_sampling(m, "RowSampling",
                                       "Row sampling scheme; as in row_sampling.py.");
  row_sampling.def(nb::init<>());
  ARBOOST_BIND_FIELDS(row_sampling, RowSampling, method, rate, reg_lambda, top_rate, other_rate,
                      full_rounds, leaves_from_all_rows);
  nb::class_<RoundParams>(m, "RoundParams", "Parameters of `Grower.run_rounds`.")
      .def(
          "__init__",
          [](RoundParams* self, const std::string& loss, std::vector<double> parameters,
             double largest_weight, double rate, std::uint64_t seed, std::uint64_t first_round,
             const RowSampling& sampling, std::vector<double> leaf_quantiles, double max_step) {
            new (self) RoundParams{.loss = {loss_named(loss), std::move(parameters)},
                                   .largest_weight = largest_weight,
                                   .rate = rate,
                                   .seed = seed,
                                   .first_round = first_round,
                                   .sampling = sampling,
                                   .leaf_quantiles = std::move(leaf_quantiles),
                                   .max_step = max_step};
          },
          nb::kw_only(), nb::arg("loss"), nb::arg("parameters"), nb::arg("largest_weight"),
          nb::arg("rate"), nb::arg("seed"), nb::arg("first_round"), nb::arg("sampling"),
          nb::arg("leaf_quantiles"), nb::arg("max_step"));
  grower.def(
      "start_scores",
      [](TreeGrower& self, const Vector<double>& of_row, Scores scores, int n_threads) {
        require(of_row.size() == scores.shape(1), "the scores have other outputs");
        self.check_scores(scores, self.n_training(), 0);
        GilRelease release;
        const std::span<const double> of_each(of_row.data(), of_row.size());
        if (auto* device = self.grower.on_device())
          device->round().start(of_each);
        else if (auto* shared = self.grower.shared())
          shared->start_scores(of_each, scores.data());
        else
          fill_scores(of_row, scores, n_threads);
      },
      nb::arg("of_row"), nb::arg("scores").noconvert(), nb::arg("n_threads"),
      "Sets the scores of all training rows: on the device, where trees grow there, or of the rows "
      "of this worker, so that `fetch_scores` brings the others.");
  m.def(
      "fill_scores",
      [](const Vector<double>& of_row, Scores scores, int n_threads) {
        require(of_row.size() == scores.shape(1), "the scores have other outputs");
        GilRelease release;
        fill_scores(of_row, scores, n_threads);
      },
      nb::arg("of_row"), nb::arg("scores").noconvert(), nb::arg("n_threads"),
      "Sets the scores of all rows.");
  grower.def("take_gradients", &take_gradients, nb::arg("loss"), nb::arg("parameters"),
             nb::arg("largest_weight"), nb::arg("least_squares"), nb::arg("y"),
             nb::arg("weight").none(), nb::arg("scores").noconvert(), nb::arg("gradients"),
             "Gradients at the scores, on the device of the grower, where both stay.");
  grower.def(
      "fetch_scores",
      [](TreeGrower& self, Scores scores) {
        self.check_scores(scores, self.n_training(), 0);
        GilRelease release;
        if (auto* device = self.grower.on_device()) device->round().fetch(scores.data());
        if (auto* shared = self.grower.shared())
          shared->fetch_scores(scores.shape(1), scores.data());
      },
      nb::arg("scores").noconvert(),
      "Copies the scores of `run_rounds` from the device, or from other workers, where they are "
      "newer there. The caller may change them then.");
  grower.def("run_rounds", &run, nb::arg("params"), nb::arg("y"), nb::arg("weight").none(),
             nb::arg("scores").noconvert(), nb::arg("gradients"), nb::arg("n_rounds"),
             nb::arg("seconds"), nb::arg("n_threads"),
             "Adds up to so many rounds of Newton boosting, and their values to the scores; "
             "returns their number: fewer where the time is over.");
  grower.def(
      "run_watched_rounds", &run_watched, nb::arg("params"), nb::arg("y"), nb::arg("weight").none(),
      nb::arg("scores").noconvert(), nb::arg("gradients"), nb::arg("n_rounds"), nb::arg("seconds"),
      nb::arg("n_threads"), nb::arg("sets"), nb::arg("losses"), nb::arg("parameters"),
      "The same with evaluation sets on the device of the grower, to whose scores the rounds "
      "are added: returns losses[round][set][loss].");
}

}  // namespace arboost::bindings
