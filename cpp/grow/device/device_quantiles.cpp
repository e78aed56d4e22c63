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
  Memory& m = *memory_;
  const std::uint32_t n = rows.n;
  // Digits of as many bits as the counts have room for.
  constexpr std::size_t most_counts = std::size_t{1} << 23, most_shared = std::size_t{32} << 10;
  const int bits = n_leaves <= most_counts >> 11 ? 11 : n_leaves <= most_counts >> 8 ? 8 : 4;
  make_room(m.residuals, n);
  make_room(m.digit_counts, n_leaves << bits);
  make_room(m.quantiles, n_leaves);
  make_room(m.statistics, n_leaves + 1);
  make_room(m.bad_residual, 1);
  // Sums in device memory, of a launch that adds them in shared memory where they fit.
  const auto launch = [&](const char* kernel, std::size_t n_sums, const auto&... args) {
    const std::size_t bytes = n_sums * sizeof(std::int64_t);
    const bool fits = bytes <= most_shared;
    s.queue.fill_zero(m.digit_counts.address(), bytes);
    s.queue.launch(s.device.kernel(kernel), {s.few_blocks(n)}, threads, fits ? bytes : 0,
                   m.residuals.data(), n, args..., m.digit_counts.data(),
                   static_cast<std::uint32_t>(n_sums), fits);
  };
  s.queue.fill_zero(m.bad_residual.address(), sizeof(unsigned long long));
  s.queue.launch(s.device.kernel("residual_items"), {blocks_for(n)}, threads, 0, rows,
                 m.residuals.data(), m.bad_residual.data());
  for (int known = 0; known < 64; known += bits) {
    const int now = std::min(bits, 64 - known), shift = 64 - known - now;
    launch("count_digits", n_leaves << now, shift, now, m.quantiles.data());
    s.queue.launch(s.device.kernel("choose_digits"), {n_leaves}, threads, 0, m.digit_counts.data(),
                   now, statistic.alpha, known == 0, m.quantiles.data());
  }
  s.queue.launch(s.device.kernel("next_residuals"), {blocks_for(n)}, threads, 0, m.residuals.data(),
                 n, m.quantiles.data());
  if (statistic.delta > 0) launch("clipped_sums", n_leaves, m.quantiles.data(), statistic);
  s.queue.launch(s.device.kernel("leaf_statistics"), {blocks_for(n_leaves)}, threads, 0,
                 m.quantiles.data(), static_cast<std::uint32_t>(n_leaves), statistic,
                 m.digit_counts.data(), m.bad_residual.data(), m.statistics.data());
  auto values = s.receive<double>(m.statistics.address(), n_leaves + 1);
  const double bad = values.back();
  values.pop_back();
  if (std::bit_cast<std::uint64_t>(bad) != 0) require_finite(bad, "residual");
  return values;
}

// The unit of fixed-point weights.
double DeviceRound::unit_of_weights(Team& team) {
  if (weight_scale_ == 0)
    weight_scale_ = target().weight == nullptr ? 1 : weight_scale(loss_rows(nullptr), team);
  return weight_scale_;
}

std::vector<double> DeviceRound::refit_leaves(std::size_t output, const LeafRule& rule,
                                              std::size_t n_nodes, Team& team) {
  DeviceState& s = state_;
  const double unit = unit_of_weights(team);
  Device::Use use(s.device);
  leaves_.walk();
  const LossRows loss = rows();
  const ResidualRows rows{loss.y,
                          loss.weight,
                          loss.scores + output,
                          loss.outputs,
                          s.rows,
                          s.n_rows,
                          leaves_.by_row(),
                          unit,
                          0,
                          0};
  return statistics_of(rows, n_nodes, {rule.alpha, rule.delta.value_or(0)});
}

double DeviceRound::huber_delta(double alpha, Team& team) {
  DeviceState& s = state_;
  const double unit = unit_of_weights(team);
  Device::Use use(s.device);
  const LossRows loss = rows();
  ResidualRows rows{loss.y,
                    loss.weight,
                    loss.scores,
                    loss.outputs,
                    {nullptr, nullptr},
                    static_cast<std::uint32_t>(loss.n_rows),
                    nullptr,
                    unit,
                    1,
                    0};
  const double delta = statistics_of(rows, 1, {alpha, 0}).front();
  if (delta > 0) return delta;
  s.queue.launch(s.device.kernel("count_nonzero"), {s.few_blocks(loss.n_rows)}, threads, 0, rows,
                 s.sample_totals.start(2, s.queue));
  const std::vector<std::int64_t> nonzero = s.sample_totals.wait(s.queue);
  if (nonzero[0] == 0) return 0;
  rows.without_zeros = 1;
  if (loss.weight != nullptr)
    rows.weight_scale =
        weight_scale(std::bit_cast<double>(nonzero[1]), static_cast<std::size_t>(nonzero[0]));
  return statistics_of(rows, 1, {alpha, 0}).front();
}

}  // namespace arboost::cuda
