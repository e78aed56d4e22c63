#include "grow/rounds/host_round.h"

#include <algorithm>

namespace arboost {

std::unique_ptr<RoundRows> NodeRows::make_round(const RoundSettings& settings) {
  return std::make_unique<HostRound>(*this, settings);
}

void HostRound::start_scores(std::span<const double> of_row, Team& team) {
  constexpr std::size_t chunk_rows = std::size_t{1} << 16;
  const std::size_t outputs = of_row.size();
  team.for_chunks(0, target().n_rows, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    if (outputs == 1) std::fill(scores_.data() + begin, scores_.data() + end, of_row[0]);
    for (std::size_t i = begin; i < end && outputs > 1; ++i)
      std::copy(of_row.begin(), of_row.end(), scores_.data() + i * outputs);
  });
}

void HostRound::set_scores(const double* scores) {
  std::copy_n(scores, target().n_rows * target().outputs, scores_.data());
}

void HostRound::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                         double factor, Team& team) {
  const TreeRows rows = rows_.training_rows();
  if (settings_.adds_repeatedly)
    kept_leaves_.add(forest, tree, settings_.table, rows, factor, scores_of(output), team);
  else
    forest.add(tree, settings_.table, rows, factor, scores_of(output), team);
}

const Gradients& HostRound::take_gradients(const LossSpec& spec, Team& team) {
  Gradients& gradients = gradients_for(spec.least_squares);
  apply_loss(spec, loss_rows(scores_.data()), target().largest_weight, gradients, team, workers());
  return gradients;
}

void HostRound::draw_uniform(double rate, std::uint32_t bits, Team& team) {
  const std::size_t first = settings_.first_row;
  sample_uniform(first, first + target().n_rows, rate, bits, sample_, team);
  const std::optional<std::uint32_t> row = row_of_empty(rate, bits);
  if (!row) return;
  sample_.size = 1;
  sample_.positions[0] = *row;
}

std::vector<double> HostRound::refit_leaves(std::size_t output, const LeafRule& rule,
                                            std::size_t n_nodes, Team& team) {
  const TreeRows& rows = rows_.tree_rows();
  const bool all = rows.is_all() && rows.n == target().n_rows;
  const std::vector<std::uint32_t> some =
      all ? std::vector<std::uint32_t>{} : rows_.leaf_of_position();
  return arboost::refit_leaves(loss_rows(scores_.data()), output,
                               all ? rows_.leaves() : some.data(), n_nodes, rule, residuals_, team);
}

double delta_of(const LossRows& rows, double alpha, Team& team) {
  const double delta = residual_quantile(rows, alpha, true, team);
  if (delta > 0) return delta;
  std::vector<double> y, weight, scores;
  for (std::size_t i = 0; i < rows.n_rows; ++i) {
    if (rows.y[i] == rows.scores[i]) continue;
    y.push_back(rows.y[i]);
    scores.push_back(rows.scores[i]);
    if (rows.weight != nullptr) weight.push_back(rows.weight[i]);
  }
  if (y.empty()) return 0;
  return residual_quantile(
      {y.data(), rows.weight == nullptr ? nullptr : weight.data(), scores.data(), y.size(), 1},
      alpha, true, team);
}

}  // namespace arboost
