// Leaf values that are quantiles of residuals.
#include <bit>

#include "grow/device/device_round.h"
#include "grow/device/device_state.h"
#include "grow/device/records/quantile_records.h"
#include "loss/leaf.h"
#include "loss/quantile_goal.h"

namespace arboost::cuda {
namespace {

double residual_of(std::uint64_t key) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  return std::bit_cast<double>(key & sign ? key ^ sign : ~key);
}

// As in loss/quantile.h, from the leaf's last digit.
double quantile_of(const LeafQuantile& leaf, double alpha) {
  if (leaf.total == 0) return 0;
  const double value = residual_of(leaf.key);
  const bool is_largest = leaf.next == ~std::uint64_t{0};
  if (is_largest || QuantileGoal(alpha, leaf.total).passed_by(leaf.below + leaf.inside))
    return value;
  return 0.5 * value + 0.5 * residual_of(leaf.next);
}

}  // namespace

std::vector<double> DeviceRound::leaf_quantiles(std::size_t output, double alpha,
                                                double weight_scale, std::size_t n_nodes) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  leaves_.walk();
  const std::uint32_t n = s.n_rows;
  const ResidualRows rows{y_.data(),        weight_.data(), scores_.data() + output,
                          outputs_,         s.rows,         n,
                          leaves_.by_row(), weight_scale};
  // Digits of as many bits as the counts have room for.
  constexpr std::size_t most_counts = std::size_t{1} << 23;
  const int bits = n_nodes <= most_counts >> 11 ? 11 : n_nodes <= most_counts >> 8 ? 8 : 4;
  make_room(residuals_, n);
  make_room(digit_counts_, n_nodes << bits);
  make_room(quantiles_, n_nodes);
  make_room(bad_residual_, 1);
  s.queue.fill_zero(bad_residual_.address(), sizeof(unsigned long long));
  s.queue.launch(s.device.kernel("residual_items"), {blocks_for(n)}, threads, 0, rows,
                 residuals_.data(), bad_residual_.data());
  for (int known = 0; known < 64; known += bits) {
    const int now = std::min(bits, 64 - known), shift = 64 - known - now;
    s.queue.fill_zero(digit_counts_.address(), (n_nodes << now) * sizeof(std::int64_t));
    s.queue.launch(s.device.kernel("count_digits"), {blocks_for(n)}, threads, 0, residuals_.data(),
                   n, shift, now, quantiles_.data(), digit_counts_.data());
    s.queue.launch(s.device.kernel("choose_digits"), {n_nodes}, threads, 0, digit_counts_.data(),
                   now, alpha, known == 0, quantiles_.data());
  }
  s.queue.launch(s.device.kernel("next_residuals"), {blocks_for(n)}, threads, 0, residuals_.data(),
                 n, quantiles_.data());
  const auto leaf_values = s.receive<LeafQuantile>(quantiles_.address(), n_nodes);
  const auto bad = s.receive<unsigned long long>(bad_residual_.address(), 1);
  if (bad[0] != 0) require_finite(std::bit_cast<double>(bad[0]), "residual");
  std::vector<double> values;
  for (const LeafQuantile& leaf : leaf_values) values.push_back(quantile_of(leaf, alpha));
  return values;
}

}  // namespace arboost::cuda
