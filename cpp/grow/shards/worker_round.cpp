#include "grow/shards/worker_round.h"

#include <algorithm>

#include "grow/shards/shared_walk.h"

namespace arboost {
namespace {

// Adds a tree to the scores of rows of all workers, whose leaves are gathered or kept.
void add_gathered(const GrownTrees& forest, std::size_t tree, const SharedCodes& codes,
                  std::span<const RowId> table_rows, std::size_t n_rows, double factor,
                  ScoreRows scores, KeptLeaves* kept_leaves, Team& team) {
  const auto find = [&] { return shared_leaves(forest, tree, codes, table_rows, team); };
  if (kept_leaves == nullptr)
    forest.add_leaves(tree, find(), factor, scores, team);
  else
    kept_leaves->add(forest, tree, n_rows, find, factor, scores, team);
}

}  // namespace

WorkerRound::WorkerRound(const ShareRows& rows, const RoundSettings& settings)
    : RoundRows(settings), rows_(rows), scores_(settings.target.n_rows * settings.target.outputs) {}

ScoreRows WorkerRound::local_scores(std::size_t output) {
  others_are_old_ = true;
  const std::size_t outputs = target().outputs;
  return {scores_.data() + rows_.range().begin * outputs + output, outputs};
}

void WorkerRound::start_scores(std::span<const double> of_row, Team&) {
  double* scores = local_scores(0).scores;
  for (std::size_t i = 0; i < rows_.range().size(); ++i)
    std::copy(of_row.begin(), of_row.end(), scores + i * of_row.size());
}

void WorkerRound::set_scores(const double* scores) {
  std::copy_n(scores, target().n_rows * target().outputs, scores_.data());
  others_are_old_ = false;
}

const double* WorkerRound::scores() {
  const auto [begin, end] = rows_.range();
  if (others_are_old_)
    gather_scores(begin, end, target().outputs, scores_.data(), rows_.codes().workers);
  others_are_old_ = false;
  return scores_.data();
}

void WorkerRound::add_last(const GrownTrees& forest, std::size_t output, Team& team) {
  rows_.local_rows().add_values(forest, local_scores(output), team);
}

void WorkerRound::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                           double factor, Team& team) {
  const TreeRows rows = rows_.local_rows().training_rows();
  const ScoreRows scores = local_scores(output);
  if (rows.n > 0) forest.add(tree, rows_.codes().local_codes, rows, factor, scores, team);
}

const Gradients& WorkerRound::take_gradients(const LossSpec& spec, Team& team) {
  LossRows rows = loss_rows(scores_.data() + rows_.range().begin * target().outputs);
  rows.y += rows_.range().begin;
  if (rows.weight != nullptr) rows.weight += rows_.range().begin;
  rows.n_rows = rows_.range().size();
  Gradients& gradients = gradients_for(spec.least_squares);
  apply_loss(spec, rows, target().largest_weight, gradients, team, rows_.codes().workers);
  return gradients;
}

void WorkerRound::draw_uniform(double rate, std::uint32_t bits, Team& team) {
  const auto [begin, end] = rows_.range();
  sample_uniform(begin, end, rate, bits, sample_, team);
  // At least one row of all is drawn. Where many rows are expected, workers need not be asked.
  constexpr double many = 4096;
  if (rate * static_cast<double>(target().n_rows) > many) return;
  std::int64_t n[] = {static_cast<std::int64_t>(sample_.size)};
  rows_.codes().workers.sum(Collective::Numbers(n));
  if (n[0] > 0) return;
  const std::size_t first = row_of_empty(target().n_rows, bits);
  if (first < begin || first >= end) return;
  sample_.size = 1;
  sample_.positions[0] = static_cast<std::uint32_t>(first - begin);
}

void GatheredRound::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                             double factor, Team& team) {
  const RowId* table_rows = share_.training_rows().table_rows;
  const std::size_t n_rows = target().n_rows;
  add_gathered(forest, tree, share_.codes(), {table_rows, table_rows == nullptr ? 0 : n_rows},
               n_rows, factor, scores_of(output),
               settings_.adds_repeatedly ? &kept_leaves_ : nullptr, team);
}

void SharedEvaluation::add_tree(const GrownTrees& forest, std::size_t tree, double factor,
                                ScoreRows scores, Team& team) {
  add_gathered(forest, tree, shared_, table_rows_, n_rows(), factor, scores,
               adds_repeatedly_ ? &kept_leaves_ : nullptr, team);
}

}  // namespace arboost
