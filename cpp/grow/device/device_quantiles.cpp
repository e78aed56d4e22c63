// Quantiles of residuals: of all rows, and as values of leaves.
#include <bit>

#include "grow/device/device_round.h"
#include "grow/device/device_state.h"
#include "grow/device/records/quantile_records.h"
#include "loss/leaf.h"

namespace arboost::cuda {

// Statistics of the residuals of each leaf: a launch or three for each digit of their bits.
std::vector<double> DeviceRound::statistics_of(const ResidualRows& rows, std::size_t n_leaves,
                                               const LeafStatistic& statistic) {
  DeviceState& s = state_;
  const std::uint32_t n = rows.n;
  // Digits of as many bits as the counts have room for.
  constexpr std::size_t most_counts = std::size_t{1} << 23, most_shared = std::size_t{32} << 10;
  const int bits = n_leaves <= most_counts >> 11 ? 11 : n_leaves <= most_counts >> 8 ? 8 : 4;
  make_room(residuals_, n);
  make_room(digit_counts_, n_leaves << bits);
  make_room(quantiles_, n_leaves);
  make_room(statistics_, n_leaves + 1);
  make_room(bad_residual_, 1);
  // Sums in device memory, of a launch that adds them in shared memory where they fit.
  const auto launch = [&](const char* kernel, std::size_t n_sums, const auto&... args) {
    const std::size_t bytes = n_sums * sizeof(std::int64_t);
    const bool fits = bytes <= most_shared;
    s.queue.fill_zero(digit_counts_.address(), bytes);
    s.queue.launch(s.device.kernel(kernel), {s.few_blocks(n)}, threads, fits ? bytes : 0,
                   residuals_.data(), n, args..., digit_counts_.data(),
                   static_cast<std::uint32_t>(n_sums), fits);
  };
  s.queue.fill_zero(bad_residual_.address(), sizeof(unsigned long long));
  s.queue.launch(s.device.kernel("residual_items"), {blocks_for(n)}, threads, 0, rows,
                 residuals_.data(), bad_residual_.data());
  for (int known = 0; known < 64; known += bits) {
    const int now = std::min(bits, 64 - known), shift = 64 - known - now;
    launch("count_digits", n_leaves << now, shift, now, quantiles_.data());
    s.queue.launch(s.device.kernel("choose_digits"), {n_leaves}, threads, 0, digit_counts_.data(),
                   now, statistic.alpha, known == 0, quantiles_.data());
  }
  s.queue.launch(s.device.kernel("next_residuals"), {blocks_for(n)}, threads, 0, residuals_.data(),
                 n, quantiles_.data());
  if (statistic.delta > 0) launch("clipped_sums", n_leaves, quantiles_.data(), statistic);
  s.queue.launch(s.device.kernel("leaf_statistics"), {blocks_for(n_leaves)}, threads, 0,
                 quantiles_.data(), static_cast<std::uint32_t>(n_leaves), statistic,
                 digit_counts_.data(), bad_residual_.data(), statistics_.data());
  auto values = s.receive<double>(statistics_.address(), n_leaves + 1);
  const double bad = values.back();
  values.pop_back();
  if (std::bit_cast<std::uint64_t>(bad) != 0) require_finite(bad, "residual");
  return values;
}

std::vector<double> DeviceRound::refit_leaves(std::size_t output, const LeafRule& rule,
                                              double weight_scale, std::size_t n_nodes) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  leaves_.walk();
  const ResidualRows rows{y_.data(),
                          weight_.data(),
                          scores_.data() + output,
                          outputs_,
                          s.rows,
                          s.n_rows,
                          leaves_.by_row(),
                          weight_scale,
                          0,
                          0};
  return statistics_of(rows, n_nodes, {rule.alpha, rule.delta.value_or(0)});
}

double DeviceRound::huber_delta(double alpha, double weight_scale) {
  DeviceState& s = state_;
  Device::Use use(s.device);
  ResidualRows rows{y_.data(), weight_.data(),     scores_.data(),
                    outputs_,  {nullptr, nullptr}, static_cast<std::uint32_t>(n_rows_),
                    nullptr,   weight_scale,       1,
                    0};
  const double delta = statistics_of(rows, 1, {alpha, 0}).front();
  if (delta > 0) return delta;
  s.queue.launch(s.device.kernel("count_nonzero"), {s.few_blocks(n_rows_)}, threads, 0, rows,
                 sample_totals_.start(2, s.queue));
  const std::vector<std::int64_t> nonzero = sample_totals_.wait(s.queue);
  if (nonzero[0] == 0) return 0;
  rows.without_zeros = 1;
  if (weight_.size() > 0)
    rows.weight_scale = arboost::weight_scale(std::bit_cast<double>(nonzero[1]),
                                              static_cast<std::size_t>(nonzero[0]));
  return statistics_of(rows, 1, {alpha, 0}).front();
}

}  // namespace arboost::cuda
