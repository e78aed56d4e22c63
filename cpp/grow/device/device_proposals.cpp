// A launch for the hessians, one for each group of features, and one for the codes.
#include "grow/device/device_proposals.h"

#include <bit>  // bit_width

#include "grow/device/device_state.h"

namespace arboost::cuda {

void DeviceProposals::update(Proposal& proposal, const PairRows& pairs, Team& team) {
  DeviceState& s = state_;
  const std::uint32_t n = pairs.n;
  const auto shift = static_cast<std::uint32_t>(std::bit_width(std::size_t{pairs.outputs} - 1));
  make_room(hessians_, n);
  s.queue.launch(s.device.kernel("row_hessians"), {blocks_for(n)}, threads, 0, pairs, shift,
                 hessians_.data());
  proposal.update(team, [&](std::span<const std::size_t> features, std::span<std::int64_t> sums) {
    std::vector<ProposedColumn> columns;
    for (const std::size_t f : features)
      columns.push_back({table_.where[f].store, proposal.first_sum(f)});
    s.send(columns, columns_);
    make_room(sums_, sums.size());
    s.queue.fill_zero(sums_.address(), sums.size_bytes());
    s.queue.launch(s.device.kernel("sum_hessians"), {s.few_blocks(n), features.size()}, threads, 0,
                   s.walked->codes(), s.all_rows(), n, hessians_.data(), columns_.data(),
                   sums_.data());
    s.queue.download(sums_, sums.size(), sums.data());
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
  s.send(columns, columns_);
  s.replace(bins.data(), bins.size(), bins_);
  s.queue.launch(s.device.kernel("propose_codes"),
                 {s.few_blocks(table_.n_rows * table_.n_features)}, threads, 0, s.walked->codes(),
                 columns_.data(), static_cast<std::uint32_t>(table_.n_features), bins_.data(),
                 s.proposed->codes(), s.proposed->room_by_row());
  s.proposed->transpose(s.device, s.queue);
}

}  // namespace arboost::cuda
