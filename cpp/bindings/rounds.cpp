// Bindings of rounds of gradient boosting, and of their evaluation sets.
#include "grow/rounds.h"

#include <nanobind/stl/function.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "bindings/loss_rows.h"
#include "bindings/tree_grower.h"
#include "grow/device/rounds/device_evaluation.h"
#include "grow/shards/worker_round.h"
#include "loss/leaf_steps.h"

namespace arboost::bindings {
namespace {

using ScoreArray = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

LossSpec loss_spec(const std::string& name, std::vector<double> parameters) {
  return {name.empty() ? Loss::given : loss_named(name), std::move(parameters)};
}

// Python's boosting: a Boosting with the arrays that it refers to.
struct RoundTrees {
  RoundTrees(TreeGrower& grower_, const RoundParams& params, std::size_t outputs,
             const Vector<double>& y_, const Weights& weight_)
      : grower(grower_), y(y_), weight(weight_), n_outputs(outputs), boosting(make(params)) {}

  Boosting make(const RoundParams& params) {
    const std::size_t outputs = n_outputs;
    const std::size_t n_rows = grower.n_training(), width = grower.trees.width;
    require(y.shape(0) == n_rows && (!weight || weight->shape(0) == n_rows) && outputs > 0 &&
                outputs % width == 0 && (width == 1 || width == outputs),
            "y, weights and outputs do not fit the grower");
    const RowSampling& sampling = params.sampling;
    for (const double share : {sampling.rate, sampling.top_rate, sampling.other_rate})
      require(share >= 0 && share <= 1, "a share of the rows is not between 0 and 1");
    require(sampling.reg_lambda >= 0, "reg_lambda is below 0");
    require(
        params.leaves != RoundParams::Leaves::quantiles || params.leaf_quantiles.size() == outputs,
        "quantiles of another number of outputs");
    for (const double alpha : params.leaf_quantiles)
      require(alpha >= 0 && alpha <= 1, "alpha is not between 0 and 1");
    require(params.parallel_trees > 0, "a round needs a tree");
    if (params.loss.loss != Loss::given) check_parameters(params.loss, outputs);
    if (params.loss.loss == Loss::huber)
      require(params.loss.parameters[0] >= 0 && params.loss.parameters[0] <= 1,
              "alpha is not between 0 and 1");
    if (params.dropout)
      for (const double share : {params.dropout->rate_drop, params.dropout->skip_drop})
        require(share >= 0 && share <= 1, "a share of the rounds is not between 0 and 1");
    require(grower.trees.n_trees() == 0, "the grower has grown trees already");
    const double largest_weight = params.largest_weight;
    return Boosting(grower.grower, grower.trees, grower.codes, params,
                    {y.data(), weight ? weight->data() : nullptr, n_rows, outputs, largest_weight});
  }

  ScoreArray array_of(const double* scores) {
    const std::size_t n_rows = grower.n_training();
    return ScoreArray(const_cast<double*>(scores), {n_rows, n_outputs}, nb::find(this));
  }
  Team loss_team(int n_threads) const {
    return team_for(8 * grower.n_training() * n_outputs, n_threads);
  }

  TreeGrower& grower;
  Vector<double> y;
  Weights weight;
  std::size_t n_outputs;
  Boosting boosting;
};

// Hooks of Python's functions, which are called with the GIL, and may ask for the leaves of the
// last tree.
RoundHooks hooks_of(RoundTrees& self, const nb::object& gradients, const nb::object& step_length,
                    const nb::object& leaf_values) {
  RoundHooks hooks;
  if (!gradients.is_none())
    hooks.gradients = [&self, &gradients](const double* scores, bool least_squares,
                                          std::uint64_t round, Gradients& out) {
      GilAcquire gil;
      gradients(self.array_of(scores), least_squares, round,
                nb::cast(&out, nb::rv_policy::reference));
    };
  if (!step_length.is_none())
    hooks.step_length = [&self, &step_length](const double* scores, const double* direction) {
      GilAcquire gil;
      return nb::cast<double>(step_length(self.array_of(scores), self.array_of(direction)));
    };
  if (!leaf_values.is_none())
    hooks.leaf_values = [&self, &leaf_values](std::size_t output) {
      GilAcquire gil;
      self.grower.has_leaves = true;
      leaf_values(output);
    };
  return hooks;
}

Evaluations evaluations_of(const RoundTrees& self, std::vector<EvaluationRows*> sets,
                           const std::vector<std::string>& losses,
                           const std::vector<std::vector<double>>& parameters, bool keeps_scores) {
  require(losses.size() == parameters.size(), "losses and parameters differ in number");
  Evaluations evaluations{std::move(sets), {}, keeps_scores};
  for (const EvaluationRows* set : evaluations.sets)
    require(set != nullptr && set->outputs() == self.n_outputs, "a set of other outputs");
  for (std::size_t i = 0; i < losses.size(); ++i) {
    evaluations.losses.push_back({loss_named(losses[i]), parameters[i]});
    check_parameters(evaluations.losses.back(), self.n_outputs);
  }
  return evaluations;
}

// (seconds [round], losses [round][set][loss], scores by round and set, weights by round).
nb::tuple to_python(FinishedRounds finished, const Evaluations& evaluations) {
  const std::size_t n_rounds = finished.seconds.size();
  nb::list scores, weights;
  for (const std::vector<double>& all : finished.scores) {
    nb::list of_sets;
    const double* next = all.data();
    for (const EvaluationRows* set : evaluations.sets) {
      const std::size_t size = set->n_rows() * set->outputs();
      of_sets.append(
          to_numpy<2>(std::vector<double>(next, next + size), {set->n_rows(), set->outputs()}));
      next += size;
    }
    scores.append(of_sets);
  }
  for (std::vector<double>& of_round : finished.weights)
    weights.append(to_numpy(std::move(of_round)));
  return nb::make_tuple(to_numpy(std::move(finished.seconds)),
                        to_numpy<3>(std::move(finished.losses),
                                    {n_rounds, evaluations.sets.size(), evaluations.losses.size()}),
                        scores, weights);
}

// Members of a team spin between trees, so that a call of many rounds wakes them once: a second
// thread pays for less work than elsewhere.
constexpr std::size_t rounds_of_pair = 16, cells_of_pair = 3072;
constexpr std::size_t cells_of_two_threads = 65536;  // elsewhere: by threads_for

nb::tuple run(RoundTrees& self, std::size_t n_rounds, double seconds,
              std::vector<EvaluationRows*> sets, const std::vector<std::string>& losses,
              const std::vector<std::vector<double>>& parameters, bool keeps_scores,
              const nb::object& gradients, const nb::object& step_length,
              const nb::object& leaf_values, int n_threads) {
  require(n_rounds > 0, "no rounds");
  const Evaluations evaluations =
      evaluations_of(self, std::move(sets), losses, parameters, keeps_scores);
  const RoundHooks hooks = hooks_of(self, gradients, step_length, leaf_values);
  const RoundParams& params = self.boosting.params();
  require(params.loss.loss != Loss::given || hooks.gradients, "no loss, and no gradients");
  require(!params.one_step || hooks.step_length, "no length of the steps");
  FinishedRounds finished;
  {
    GilRelease release;
    TreeGrower& grower = self.grower;
    const std::size_t cells = grower.n_training() * grower.codes.n_features;
    const bool is_pair = n_rounds >= rounds_of_pair && cells >= cells_of_pair;
    Team team = grower.team(is_pair ? std::max(cells, cells_of_two_threads) : cells, n_threads);
    std::optional<Team> other;
    const int for_loss = threads_for(8 * grower.n_training() * self.n_outputs, n_threads);
    if (for_loss != team.size()) other.emplace(for_loss, poll_python);
    grower.has_leaves = false;
    grower.sample.reset();
    finished = self.boosting.run(n_rounds, std::chrono::duration<double>(seconds), evaluations,
                                 hooks, other ? *other : team, team);
    grower.has_leaves = true;
  }
  return to_python(std::move(finished), evaluations);
}

void bind_params(nb::module_& m) {
  nb::enum_<RowSampling::Method>(m, "SamplingMethod", "Choice of the rows of a tree.")
      .value("uniform", RowSampling::Method::uniform)
      .value("gradient_based", RowSampling::Method::gradient_based)
      .value("goss", RowSampling::Method::goss);
  nb::class_<RowSampling> row_sampling(m, "RowSampling", "Row sampling; as in trees/samples.py.");
  row_sampling.def(nb::init<>());
  ARBOOST_BIND_FIELDS(row_sampling, RowSampling, method, rate, reg_lambda, top_rate, other_rate,
                      full_rounds, leaves_from_all_rows);
  nb::class_<Dropout> dropout(m, "Dropout", "Dropout of rounds; as in boosting_rounds.py.");
  dropout.def(nb::init<>());
  ARBOOST_BIND_FIELDS(dropout, Dropout, rate_drop, skip_drop, one_drop, by_weight, as_forest);
  nb::enum_<RoundParams::Leaves>(m, "LeafValues", "Origin of the values of leaves.")
      .value("newton", RoundParams::Leaves::newton)
      .value("quantiles", RoundParams::Leaves::quantiles)
      .value("steps", RoundParams::Leaves::steps);
  nb::class_<RoundParams> params(m, "RoundParams", "Parameters of `Boosting`.");
  params.def(nb::init<>())
      .def(
          "set_loss",
          [](RoundParams& self, const std::string& loss, std::vector<double> parameters) {
            self.loss = loss_spec(loss, std::move(parameters));
          },
          "loss"_a, "parameters"_a,
          "The loss; \"\": its gradients are given. Huber's has the quantile of its delta.");
  ARBOOST_BIND_FIELDS(params, RoundParams, least_squares, leaves, leaf_quantiles, max_step, rate,
                      largest_weight, seed, first_round, sampling, parallel_trees, dropout,
                      one_step);
}

// Rows of a table in this process, on a device, or shared by workers.
void bind_evaluation(nb::module_& m) {
  nb::class_<EvaluationRows> evaluation(m, "EvaluationRows", "An evaluation set, with its scores.");
  evaluation
      .def(
          "set_scores",
          [](EvaluationRows& self, const GivenScores& scores) {
            require(scores.shape(0) == self.n_rows() && scores.shape(1) == self.outputs(),
                    "these scores do not fit the rows and outputs");
            GilRelease release;
            self.set_scores(scores.data());
          },
          "scores"_a, "Replaces the scores.")
      .def(
          "add",
          [](EvaluationRows& self, const TreeGrower& grower, std::size_t first, std::size_t n_trees,
             double factor, int n_threads) {
            require(first + n_trees <= grower.trees.n_trees() &&
                        self.outputs() % grower.trees.width == 0,
                    "the trees do not exist, or do not fit the outputs");
            GilRelease release;
            Team team = grower.team(8 * self.n_rows(), n_threads);
            self.add(grower.trees, first, n_trees, factor, team);
          },
          "grower"_a, "first"_a, "n_trees"_a, "factor"_a, "n_threads"_a,
          "Adds trees times a factor; those of a round are in the order of their outputs.")
      .def(
          "mean_loss",
          [](EvaluationRows& self, const std::string& loss, std::vector<double> parameters,
             int n_threads) {
            const LossSpec spec{loss_named(loss), std::move(parameters)};
            CallTeam team(8 * self.n_rows(), n_threads);
            self.losses();
            self.start_loss(spec, team);
            return self.losses().front();
          },
          "loss"_a, "parameters"_a, "n_threads"_a,
          "The weighted mean loss at the scores, as `loss_value`.")
      .def_prop_ro(
          "scores",
          [](EvaluationRows& self) {
            return ScoreArray(const_cast<double*>(self.scores()), {self.n_rows(), self.outputs()},
                              nb::find(self));
          },
          nb::rv_policy::automatic, "The scores, until the next round.");
  const auto define = [&m](auto make) {
    m.def("make_evaluation", make, "codes"_a, "rows"_a.none(), "y"_a, "weight"_a.none(), "scores"_a,
          "adds_repeatedly"_a, "device"_a, nb::keep_alive<0, 1>(), nb::keep_alive<0, 3>(),
          nb::keep_alive<0, 4>(), nb::rv_policy::take_ownership,
          "An evaluation set where its rows are.");
  };
  define([](const Codes& codes, const std::optional<RowIds>& table_rows, const Vector<double>& y,
            const Weights& weight, const GivenScores& scores, bool adds_repeatedly,
            int device) -> EvaluationRows* {
    const std::span<const RowId> ids = checked_rows(table_rows, codes.n_rows);
    const LossRows rows = loss_rows(y, weight, scores, ids.empty() ? codes.n_rows : ids.size());
    GilRelease release;
    if (device >= 0) return new cuda::DeviceEvaluation(device, codes, ids, rows);
    return new HostEvaluation(codes, ids, rows, adds_repeatedly);
  });
  define([](const SharedTable& table, const std::optional<RowIds>& table_rows,
            const Vector<double>& y, const Weights& weight, const GivenScores& scores,
            bool adds_repeatedly, int) -> EvaluationRows* {
    const std::span<const RowId> ids = checked_rows(table_rows, table.codes.n_rows);
    const LossRows rows =
        loss_rows(y, weight, scores, ids.empty() ? table.codes.n_rows : ids.size());
    return new SharedEvaluation(table.codes, ids, rows, adds_repeatedly);
  });
}

}  // namespace

void bind_rounds(nb::module_& m) {
  bind_params(m);
  bind_evaluation(m);
  nb::class_<RoundTrees>(m, "Boosting", "Rounds of gradient boosting by one grower.")
      .def(nb::init<TreeGrower&, const RoundParams&, std::size_t, const Vector<double>&,
                    const Weights&>(),
           "grower"_a, "params"_a, "n_outputs"_a, "y"_a, "weight"_a.none(), nb::keep_alive<1, 2>())
      .def(
          "start_scores",
          [](RoundTrees& self, const Vector<double>& of_row, int n_threads) {
            require(of_row.size() == self.n_outputs, "the scores have other outputs");
            GilRelease release;
            Team team = self.loss_team(n_threads);
            self.boosting.rows().start_scores({of_row.data(), of_row.size()}, team);
          },
          "of_row"_a, "n_threads"_a, "Sets the scores of all training rows.")
      .def(
          "set_scores",
          [](RoundTrees& self, const GivenScores& scores) {
            require(
                scores.shape(0) == self.grower.n_training() && scores.shape(1) == self.n_outputs,
                "these scores do not fit the rows and outputs");
            GilRelease release;
            self.boosting.rows().set_scores(scores.data());
          },
          "scores"_a, "Replaces the scores of the training rows.")
      .def_prop_ro(
          "scores",
          [](RoundTrees& self) {
            return self.array_of(without_gil([&] { return self.boosting.rows().scores(); }));
          },
          nb::rv_policy::automatic, "The scores of all training rows, until the next round.")
      .def_prop_rw(
          "weights",
          [](const RoundTrees& self) { return to_numpy(std::vector(self.boosting.weights())); },
          [](RoundTrees& self, const Vector<double>& weights) {
            require(weights.size() == self.boosting.n_rounds(),
                    "these are not the factors of all rounds");
            self.boosting.set_weights({weights.data(), weights.size()});
          },
          nb::for_getter(nb::rv_policy::automatic),
          "Factors of the rounds of dropout or of a line search.")
      .def(
          "gradients",
          [](RoundTrees& self, bool least_squares) -> const Gradients& {
            return self.boosting.rows().gradients(least_squares);
          },
          "least_squares"_a, nb::rv_policy::reference_internal, "Gradients of the last round.")
      .def_prop_ro(
          "sample", [](RoundTrees& self) -> const Sample& { return self.boosting.rows().sample(); },
          nb::rv_policy::reference_internal, "Rows of the last tree, where they were drawn.")
      .def(
          "add_all",
          [](RoundTrees& self, const std::vector<EvaluationRows*>& sets, int n_threads) {
            GilRelease release;
            Team team = self.loss_team(n_threads);
            self.boosting.add_all(sets, team);
          },
          "sets"_a, "n_threads"_a, "Adds all trees of the grower to the scores.")
      .def("run", &run, "n_rounds"_a, "seconds"_a, nb::kw_only(), "sets"_a, "losses"_a,
           "parameters"_a, "keeps_scores"_a, "gradients"_a.none() = nb::none(),
           "step_length"_a.none() = nb::none(), "leaf_values"_a.none() = nb::none(), "n_threads"_a,
           "Adds up to n_rounds rounds, at least one; fewer where the time is over. Returns by "
           "round: seconds since the call, losses of each set, scores of each set if they are "
           "kept, and the factors of all rounds under dropout.");
  m.def(
      "leaf_steps",
      [](const std::string& loss, const std::vector<double>& parameters, std::size_t n_outputs,
         const Vector<double>& g, const Vector<double>& h) {
        require(g.size() == h.size(), "gradients and hessians differ in number");
        const LossSpec spec = loss_spec(loss, parameters);
        if (spec.loss != Loss::given) check_parameters(spec, n_outputs);
        std::vector<double> steps(g.size());
        leaf_steps(spec, n_outputs, g.data(), h.data(), g.size(), steps.data());
        return to_numpy(std::move(steps));
      },
      "loss"_a, "parameters"_a, "n_outputs"_a, "g"_a, "h"_a,
      "Steps that minimise a loss in leaves of these sums; \"\": one step of Newton's method.");
}

}  // namespace arboost::bindings
