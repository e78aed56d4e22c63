#include "grow/device/device_round_rows.h"

#include <algorithm>

#include "grow/rounds/host_round.h"

namespace arboost::cuda {

std::unique_ptr<RoundRows> DeviceRows::make_round(const RoundSettings& settings) {
  return std::make_unique<DeviceRoundRows>(*this, settings);
}

// Targets, weights and the newest scores come into the memory of the device.
void DeviceRoundRows::open() {
  rows_.round().open(loss_rows(scores_.data()));
}

void DeviceRoundRows::start_scores(std::span<const double> of_row, Team&) {
  rows_.round().start(of_row);
}

void DeviceRoundRows::set_scores(const double* scores) {
  this->scores();  // the device then takes the scores of the host
  std::copy_n(scores, target().n_rows * target().outputs, scores_.data());
}

const double* DeviceRoundRows::scores() {
  make_room(scores_, target().n_rows * target().outputs);
  rows_.round().fetch(scores_.data());
  return scores_.data();
}

void DeviceRoundRows::add_last(const GrownTrees& forest, std::size_t output, Team&) {
  open();
  rows_.round().add_last(forest, output);
}

void DeviceRoundRows::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                               double factor, Team& team) {
  scores();
  forest.add(tree, settings_.table, rows_.training_rows(), factor,
             {scores_.data() + output, target().outputs}, team);
}

const Gradients& DeviceRoundRows::take_gradients(const LossSpec& spec, Team&) {
  open();
  Gradients& gradients = gradients_for(spec.least_squares);
  rows_.round().apply_loss(spec, target().largest_weight, gradients);
  return gradients;
}

double DeviceRoundRows::huber_delta(double alpha, Team& team) {
  return delta_of(loss_rows(scores()), alpha, team);
}

std::vector<double> DeviceRoundRows::refit_leaves(std::size_t output, const LeafRule& rule,
                                                  std::size_t n_nodes, Team& team) {
  if (rule.delta) {
    const std::vector<std::uint32_t> leaves = rows_.leaf_of_position();
    return arboost::refit_leaves(loss_rows(scores()), output, leaves.data(), n_nodes, rule, team);
  }
  if (weight_scale_ == 0)
    weight_scale_ = target().weight == nullptr ? 1 : weight_scale(loss_rows(nullptr), team);
  open();
  return rows_.round().leaf_quantiles(output, rule.alpha, weight_scale_, n_nodes);
}

void DeviceRoundRows::draw_uniform(double rate, std::uint32_t bits, Team&) {
  open();
  rows_.round().draw_uniform(rate, bits, sample_);
}

void DeviceRoundRows::draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                                       std::uint32_t bits, Team&) {
  open();
  rows_.round().draw_by_gradient(gradients, rate, reg_lambda, bits, sample_);
}

void DeviceRoundRows::draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                                    std::uint32_t bits, Team&) {
  open();
  rows_.round().draw_one_side(gradients, top_rate, other_rate, bits, sample_);
}

}  // namespace arboost::cuda
