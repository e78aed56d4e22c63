#include "grow/device/device_round.h"

#include <algorithm>

#include "grow/rounds/host_round.h"

namespace arboost::cuda {

std::unique_ptr<RoundRows> DeviceRows::make_round(const RoundSettings& settings) {
  return std::make_unique<DeviceRound>(*this, settings);
}

// Makes the device current, with targets, weights and the newest scores in its memory.
void DeviceRound::open(std::optional<Device::Use>& use) {
  rows_.open_rounds(loss_rows(scores_.data()), use);
}

void DeviceRound::start_scores(std::span<const double> of_row, Team&) {
  rows_.start_scores(of_row);
}

void DeviceRound::set_scores(const double* scores) {
  this->scores();  // the device then takes the scores of the host
  std::copy_n(scores, target().n_rows * target().outputs, scores_.data());
}

const double* DeviceRound::scores() {
  make_room(scores_, target().n_rows * target().outputs);
  rows_.fetch_scores(scores_.data());
  return scores_.data();
}

void DeviceRound::add_last(const GrownTrees& forest, std::size_t output, Team&) {
  std::optional<Device::Use> use;
  open(use);
  rows_.add_values(forest, output);
}

void DeviceRound::add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output,
                           double factor, Team& team) {
  scores();
  forest.add(tree, settings_.table, rows_.training_rows(), factor,
             {scores_.data() + output, target().outputs}, team);
}

const Gradients& DeviceRound::take_gradients(const LossSpec& spec, Team&) {
  std::optional<Device::Use> use;
  open(use);
  Gradients& gradients = gradients_for(spec.least_squares);
  rows_.rounds().apply_loss(spec, target().largest_weight, gradients);
  return gradients;
}

double DeviceRound::huber_delta(double alpha, Team& team) {
  return delta_of(loss_rows(scores()), alpha, team);
}

std::vector<double> DeviceRound::refit_leaves(std::size_t output, const LeafRule& rule,
                                              std::size_t n_nodes, Team& team) {
  if (rule.delta) {
    const std::vector<std::uint32_t> leaves = rows_.leaf_of_position();
    return arboost::refit_leaves(loss_rows(scores()), output, leaves.data(), n_nodes, rule, team);
  }
  if (weight_scale_ == 0)
    weight_scale_ = target().weight == nullptr ? 1 : weight_scale(loss_rows(nullptr), team);
  std::optional<Device::Use> use;
  open(use);
  return rows_.leaf_quantiles(output, rule.alpha, weight_scale_, n_nodes);
}

void DeviceRound::draw_uniform(double rate, std::uint32_t bits, Team&) {
  std::optional<Device::Use> use;
  open(use);
  rows_.draw_uniform(rate, bits, sample_);
}

void DeviceRound::draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                                   std::uint32_t bits, Team&) {
  std::optional<Device::Use> use;
  open(use);
  rows_.draw_by_gradient(gradients, rate, reg_lambda, bits, sample_);
}

void DeviceRound::draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                                std::uint32_t bits, Team&) {
  std::optional<Device::Use> use;
  open(use);
  rows_.draw_one_side(gradients, top_rate, other_rate, bits, sample_);
}

}  // namespace arboost::cuda
