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

void RoundRows::draw_uniform(double, std::uint32_t, Team&) {
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
  if (!gradients) gradients.emplace(target().n_rows, target().outputs, settings_.by_row);
  return *gradients;
}

const Gradients& RoundRows::fill_gradients(bool least_squares, FunctionRef<void(Gradients&)> fill) {
  Gradients& gradients = gradients_for(least_squares);
  fill(gradients);
  return gradients;
}

std::optional<std::uint32_t> RoundRows::row_of_empty(double least, std::uint32_t bits) {
  const std::size_t n_rows = target().n_rows, first = settings_.first_row;
  const std::size_t all_rows = settings_.workers == nullptr ? n_rows : settings_.all_rows;
  // Where many rows are expected, workers need not be asked.
  constexpr double many = 4096;
  if (least * static_cast<double>(all_rows) > many) return std::nullopt;
  std::int64_t n[] = {static_cast<std::int64_t>(sample_.size)};
  workers().sum(Collective::Numbers(n));
  const std::size_t row = arboost::row_of_empty(all_rows, bits);
  if (n[0] > 0 || row < first || row >= first + n_rows) return std::nullopt;
  return static_cast<std::uint32_t>(row - first);
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
