// The steps of a round, from top to bottom of `run_round`.
#include "grow/rounds.h"

#include <algorithm>

#include "loss/leaf_steps.h"

namespace arboost {
namespace {

constexpr std::size_t most_score_bytes = std::size_t{1} << 26;  // that a call hands over

// Whether some step needs the scores of all rows, not only those of a worker.
bool needs_all_rows(const RoundParams& params) {
  return params.loss.loss == Loss::given || params.loss.loss == Loss::huber ||
         params.leaves == RoundParams::Leaves::quantiles ||
         params.sampling.method != RowSampling::Method::uniform || params.dropout ||
         params.one_step;
}

// Whether leaf values need hessians that the trees of the round do not have.
bool has_newton_gradients(const RoundParams& params) {
  return params.least_squares && params.leaves == RoundParams::Leaves::steps &&
         params.loss.loss != Loss::squared_error;
}

}  // namespace

Boosting::Boosting(Grower& grower, GrownTrees& forest, const Codes& table,
                   const RoundParams& params, const RoundTarget& target)
    : grower_(grower),
      forest_(forest),
      params_(params),
      rows_(grower.make_round({.table = table,
                               .target = target,
                               .by_row = forest.width > 1,
                               .needs_all_rows = needs_all_rows(params),
                               .adds_repeatedly = params.dropout.has_value()})),
      loss_(params.loss) {
  if (params.one_step) direction_.assign(target.n_rows * target.outputs, 0.0);
}

void Boosting::add_all(std::span<EvaluationRows* const> sets, Team& team) {
  for (std::size_t round = 0; round < n_rounds(); ++round) {
    add_round(round, 1, team);
    for (EvaluationRows* set : sets)
      set->add(forest_, round * trees_per_round(), trees_per_round(), 1, team);
  }
}

FinishedRounds Boosting::run(std::size_t n_rounds, std::chrono::duration<double> time,
                             const Evaluations& evaluations, const RoundHooks& hooks,
                             Team& loss_team, Team& team) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const auto start = Clock::now();
  const Call call{evaluations, hooks, loss_team, team};
  FinishedRounds finished;
  const auto has_room = [&] {
    if (finished.scores.empty()) return true;
    const std::size_t bytes = finished.scores.front().size() * sizeof(double);
    return (finished.scores.size() + 1) * bytes <= most_score_bytes;
  };
  do {
    run_round(call);
    note_round(call, finished);
    finished.seconds.push_back(Seconds(Clock::now() - start).count());
  } while (finished.seconds.size() < n_rounds && has_room() &&
           rows_->has_time(Clock::now() - start, time));
  const std::size_t n_sets = evaluations.sets.size(), n_losses = evaluations.losses.size();
  finished.losses.resize(finished.seconds.size() * n_sets * n_losses);
  for (std::size_t s = 0; s < n_sets; ++s) {
    const std::vector<double> losses = evaluations.sets[s]->losses();
    for (std::size_t i = 0; i < losses.size(); ++i)
      finished.losses[(i / n_losses * n_sets + s) * n_losses + i % n_losses] = losses[i];
  }
  return finished;
}

void Boosting::run_round(const Call& call) {
  const std::size_t round = n_rounds();
  const std::vector<std::size_t> dropped = drop(call.team);
  take_gradients(call);
  for (std::size_t i = 0; i < params_.parallel_trees; ++i)
    grow_trees(round * params_.parallel_trees + i, call);
  const double factor = settle(dropped, call);
  if (!adds_at_once()) add_round(round, factor, call.team);
  for (EvaluationRows* set : call.evaluations.sets)
    set->add(forest_, round * trees_per_round(), trees_per_round(), factor, call.team);
}

// Takes dropped rounds out of the training scores.
std::vector<std::size_t> Boosting::drop(Team& team) {
  if (!params_.dropout) return {};
  const std::vector<std::size_t> dropped = params_.dropout->draw(weights_, params_.seed);
  for (const std::size_t round : dropped) add_round(round, -weights_[round], team);
  return dropped;
}

void Boosting::take_gradients(const Call& call) {
  if (loss_.loss == Loss::huber)
    loss_.parameters = {rows_->huber_delta(params_.loss.parameters[0], call.loss_team)};
  gradients_ = &gradients_of(loss_, params_.least_squares, call);
  newton_ = has_newton_gradients(params_) ? &gradients_of(loss_, false, call) : gradients_;
  grower_.propose(*gradients_, call.team);
}

const Gradients& Boosting::gradients_of(const LossSpec& loss, bool least_squares,
                                        const Call& call) {
  if (loss.loss == Loss::given)
    return rows_->fill_gradients(least_squares, [&](Gradients& out) {
      call.hooks.gradients(rows_->scores(), least_squares, params_.first_round + n_rounds(), out);
    });
  LossSpec spec = loss;
  spec.least_squares = least_squares;
  return rows_->take_gradients(spec, call.loss_team);
}

// Grows the trees of one sample.
void Boosting::grow_trees(std::size_t number, const Call& call) {
  const std::size_t outputs = rows_->target().outputs;
  const double rate = params_.rate / static_cast<double>(params_.parallel_trees);
  const std::uint64_t round = params_.first_round + n_rounds();
  const Sample* sample =
      rows_->draw(params_.sampling, *gradients_, round, {params_.seed, number}, call.team);
  for (std::size_t output = 0; output < outputs; output += forest_.width) {
    grower_.grow(*gradients_, output,
                 {.seed = params_.seed,
                  .number = forest_.n_trees(),
                  // XGBoost prefers the first of equally good features. Friedman leaves it to
                  // chance, which is worth a lot on small tables, where many splits are equal; here
                  // every round of his boosting prefers another one.
                  .turn = params_.least_squares ? round : 0,
                  .rate = rate,
                  .sample = sample,
                  .leaves_from_all_rows = params_.sampling.leaves_from_all_rows},
                 forest_, call.team);
    set_leaf_values(output, rate, call);
    if (params_.one_step)
      grower_.add_last(forest_, output, outputs, direction_.data(), call.team);
    else if (adds_at_once())
      rows_->add_last(forest_, output, call.team);
  }
}

// Sets node values of the last tree that are not -G / (H + lambda).
void Boosting::set_leaf_values(std::size_t output, double rate, const Call& call) {
  if (call.hooks.leaf_values) return call.hooks.leaf_values(output);
  if (params_.leaves == RoundParams::Leaves::newton) return;
  std::vector<double> values = refit(output, call);
  for (double& value : values)
    value = rate * std::clamp(value, -params_.max_step, params_.max_step);
  forest_.set_values(forest_.n_trees() - 1, values, grower_.params().monotone);
}

std::vector<double> Boosting::refit(std::size_t output, const Call& call) {
  const std::size_t width = forest_.width, n_nodes = forest_.n_nodes(forest_.n_trees() - 1);
  std::vector<double> values(n_nodes * width);
  if (params_.leaves == RoundParams::Leaves::steps) {
    const std::vector<double> sums = grower_.sums(*newton_, output, call.team);
    std::vector<double> g(values.size()), h(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      g[i] = sums[2 * i];
      h[i] = sums[2 * i + 1];
    }
    leaf_steps(loss_, rows_->target().outputs, g.data(), h.data(), values.size(), values.data());
    return values;
  }
  std::optional<double> delta;
  if (loss_.loss == Loss::huber) delta = loss_.parameters[0];
  for (std::size_t k = 0; k < width; ++k) {
    const std::vector<double> column = rows_->refit_leaves(
        output + k, {params_.leaf_quantiles[output + k], delta}, n_nodes, call.team);
    for (std::size_t i = 0; i < n_nodes; ++i) values[i * width + k] = column[i];
  }
  return values;
}

// Puts dropped rounds back with their new factors; returns the factor of the new round.
double Boosting::settle(std::span<const std::size_t> dropped, const Call& call) {
  if (params_.one_step) return step(call);
  if (!params_.dropout) return 1;
  const auto [new_round, factor] = params_.dropout->factors(dropped.size(), params_.rate);
  const std::size_t per_round = trees_per_round();
  for (const std::size_t round : dropped) add_round(round, weights_[round] * factor, call.team);
  for (const std::size_t round : dropped)
    for (EvaluationRows* set : call.evaluations.sets)
      set->add(forest_, round * per_round, per_round, weights_[round] * factor - weights_[round],
               call.team);
  for (const std::size_t round : dropped) weights_[round] *= factor;
  weights_.push_back(new_round);
  return new_round;
}

// Adds the trees of a round to the training scores, times the length of a line search.
double Boosting::step(const Call& call) {
  const double* scores = rows_->scores();
  const double factor = params_.rate * call.hooks.step_length(scores, direction_.data());
  for (std::size_t i = 0; i < direction_.size(); ++i)
    direction_[i] = scores[i] + factor * direction_[i];
  rows_->set_scores(direction_.data());
  std::fill(direction_.begin(), direction_.end(), 0.0);
  weights_.push_back(factor);
  return factor;
}

// Adds a round, times a factor, to the training scores.
void Boosting::add_round(std::size_t round, double factor, Team& team) {
  const std::size_t per_sample = rows_->target().outputs / forest_.width;
  const std::size_t first = round * trees_per_round();
  for (std::size_t tree = first; tree < first + trees_per_round(); ++tree)
    rows_->add_tree(forest_, tree, tree % per_sample * forest_.width, factor, team);
}

void Boosting::note_round(const Call& call, FinishedRounds& finished) const {
  for (EvaluationRows* set : call.evaluations.sets)
    for (const LossSpec& loss : call.evaluations.losses) set->start_loss(loss, call.loss_team);
  if (params_.dropout) finished.weights.push_back(weights_);
  if (!call.evaluations.keeps_scores) return;
  std::vector<double>& scores = finished.scores.emplace_back();
  for (EvaluationRows* set : call.evaluations.sets)
    scores.insert(scores.end(), set->scores(), set->scores() + set->n_rows() * set->outputs());
}

}  // namespace arboost
