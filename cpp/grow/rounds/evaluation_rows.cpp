#include "grow/rounds/evaluation_rows.h"

#include <algorithm>
#include <utility>  // exchange

namespace arboost {

HostEvaluation::HostEvaluation(const Codes& codes, std::span<const RowId> table_rows,
                               const LossRows& rows, bool adds_repeatedly)
    : EvaluationRows(rows),
      codes_(codes),
      table_rows_(table_rows.begin(), table_rows.end()),
      adds_repeatedly_(adds_repeatedly),
      scores_(rows.n_rows * rows.outputs) {
  set_scores(rows.scores);
  rows_.scores = scores_.data();
}

void HostEvaluation::add(const GrownTrees& forest, std::size_t first, std::size_t n, double factor,
                         Team& team) {
  const std::size_t per_round = outputs() / forest.width;
  for (std::size_t tree = first; tree < first + n; ++tree) {
    const std::size_t output = tree % per_round * forest.width;
    add_tree(forest, tree, factor, {scores_.data() + output, outputs()}, team);
  }
}

void HostEvaluation::add_tree(const GrownTrees& forest, std::size_t tree, double factor,
                              ScoreRows scores, Team& team) {
  const TreeRows rows{n_rows(), nullptr, table_rows_.empty() ? nullptr : table_rows_.data()};
  if (adds_repeatedly_)
    kept_leaves_.add(forest, tree, codes_, rows, factor, scores, team);
  else
    forest.add(tree, codes_, rows, factor, scores, team);
}

void HostEvaluation::start_loss(const LossSpec& spec, Team& team) {
  check_parameters(spec, outputs());
  losses_.push_back(mean_loss(spec, rows_, team));
}

std::vector<double> HostEvaluation::losses() {
  return std::exchange(losses_, {});
}

void HostEvaluation::set_scores(const double* scores) {
  std::copy_n(scores, n_rows() * outputs(), scores_.data());
}

}  // namespace arboost
