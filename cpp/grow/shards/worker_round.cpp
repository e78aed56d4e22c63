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

WorkerRound::WorkerRound(ShareRows& rows, const RoundSettings& settings)
    : RoundRows(settings), rows_(rows) {
  const std::size_t first = rows.range().begin;
  RoundSettings local = settings;
  local.target.y += first;
  if (local.target.weight != nullptr) local.target.weight += first;
  local.target.n_rows = rows.range().size();
  local.workers = &rows.codes().workers;
  local.first_row = first;
  local.all_rows = settings.target.n_rows;
  local_ = rows.local_rows().make_round(local);
}

void WorkerRound::start_scores(std::span<const double> of_row, Team& team) {
  local_->start_scores(of_row, team);
  is_old_ = true;
}

void WorkerRound::set_scores(const double* scores) {
  local_->set_scores(scores + rows_.range().begin * target().outputs);
  is_old_ = true;
}

const double* WorkerRound::scores() {
  if (!is_old_) return scores_.data();
  const auto [begin, end] = rows_.range();
  const std::size_t outputs = target().outputs;
  make_room(scores_, target().n_rows * outputs);
  std::copy_n(local_->scores(), (end - begin) * outputs, scores_.data() + begin * outputs);
  gather_scores(begin, end, outputs, scores_.data(), rows_.codes().workers);
  is_old_ = false;
  return scores_.data();
}

void WorkerRound::add_last(const GrownTrees& forest, std::size_t output, Team& team) {
  local_->add_last(forest, output, team);
  is_old_ = true;
}

void WorkerRound::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                           double factor, Team& team) {
  local_->add_tree(forest, tree, output, factor, team);
  is_old_ = true;
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
