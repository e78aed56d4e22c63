#include "grow/rounds/round_rows.h"

#include <stdexcept>

namespace arboost {
namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("a step needs the scores of all rows, but only some are here");
}

}  // namespace

double RoundRows::huber_delta(double, Team&) {
  refuse();
}

std::vector<double> RoundRows::refit_leaves(std::size_t, const LeafRule&, std::size_t, Team&) {
  refuse();
}

void RoundRows::draw_by_gradient(const Gradients&, double, double, std::uint32_t, Team&) {
  refuse();
}

void RoundRows::draw_one_side(const Gradients&, double, double, std::uint32_t, Team&) {
  refuse();
}

Gradients& RoundRows::gradients_for(bool least_squares) {
  std::optional<Gradients>& gradients = gradients_[least_squares];
  if (!gradients) gradients.emplace(n_gradients(), target().outputs, settings_.by_row);
  return *gradients;
}

const Gradients& RoundRows::fill_gradients(bool least_squares, FunctionRef<void(Gradients&)> fill) {
  Gradients& gradients = gradients_for(least_squares);
  fill(gradients);
  return gradients;
}

const Sample* RoundRows::draw(const RowSampling& sampling, const Gradients& gradients,
                              std::uint64_t n_rounds, const DrawSeed& seed, Team& team) {
  const std::uint32_t bits = draw_bits(seed);
  switch (sampling.method) {
    case RowSampling::Method::uniform:
      if (sampling.rate >= 1) return nullptr;
      draw_uniform(sampling.rate, bits, team);
      break;
    case RowSampling::Method::gradient_based:
      if (sampling.rate >= 1) return nullptr;
      draw_by_gradient(gradients, sampling.rate, sampling.reg_lambda, bits, team);
      break;
    case RowSampling::Method::goss:
      if (n_rounds < sampling.full_rounds) return nullptr;
      draw_one_side(gradients, sampling.top_rate, sampling.other_rate, bits, team);
      break;
  }
  return &sample_;
}

}  // namespace arboost
