// Candidates of a round: sums of hessians by code and the proposed codes are made on the device,
// and the host's own code proposes bins from the sums.
#include <bit>  // bit_width

#include "grow/device/device_rows.h"
#include "grow/device/device_state.h"

namespace arboost::cuda {

void DeviceRows::propose(Proposal& proposal, const Gradients& gradients, Team& team) {
  DeviceState& s = *state_;
  Device::Use use(s.device);
  const Pairs pairs = pairs_of(gradients, 0, nullptr);
  const auto n = static_cast<std::uint32_t>(n_training_);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(gradients.outputs - 1));
  const PairRows rows{pairs.pairs,
                      pairs.row_stride,
                      pairs.output_stride,
                      {nullptr, nullptr},
                      n,
                      0,
                      static_cast<std::uint32_t>(gradients.outputs),
                      0,
                      0};
  const RowNumbers numbers{nullptr, s.table_rows.data()};
  const std::size_t most_blocks = 8 * static_cast<std::size_t>(s.device.multiprocessors());
  make_room(s.hessians, n_training_);
  s.queue.launch(s.device.kernel("row_hessians"), {blocks_for(n)}, threads, 0, rows, shift,
                 s.hessians.data());
  proposal.update(team, [&](std::span<const std::size_t> features, std::span<std::int64_t> sums) {
    std::vector<ProposedColumn> columns;
    for (const std::size_t f : features)
      columns.push_back({table_.where[f].store, proposal.first_sum(f)});
    s.send(columns, s.proposed_columns);
    make_room(s.hessian_sums, sums.size());
    s.queue.fill_zero(s.hessian_sums.address(), sums.size_bytes());
    s.queue.launch(s.device.kernel("sum_hessians"),
                   {std::min(most_blocks, blocks_for(n)), features.size()}, threads, 0,
                   s.walked->codes(), numbers, n, s.hessians.data(), s.proposed_columns.data(),
                   s.hessian_sums.data());
    s.queue.download(s.hessian_sums, sums.size(), sums.data());
    s.queue.wait();
  });
  if (!s.proposed) return;  // all features keep their codes
  std::vector<ProposedColumn> columns;
  std::vector<std::uint16_t> bins;
  for (std::size_t f = 0; f < table_.n_features; ++f) {
    columns.push_back({table_.where[f].store, static_cast<std::uint32_t>(bins.size())});
    const auto of_feature = proposal.bin_of_code(f);
    bins.insert(bins.end(), of_feature.begin(), of_feature.end());
  }
  s.send(columns, s.proposed_columns);
  s.replace(bins.data(), bins.size(), s.proposed_bins);
  s.queue.launch(s.device.kernel("propose_codes"),
                 {std::min(8 * most_blocks, blocks_for(table_.n_rows * table_.n_features))},
                 threads, 0, s.walked->codes(), s.proposed_columns.data(),
                 static_cast<std::uint32_t>(table_.n_features), s.proposed_bins.data(),
                 s.proposed->codes(), s.proposed->room_by_row());
  s.proposed->transpose(s.device, s.queue);
}

}  // namespace arboost::cuda
