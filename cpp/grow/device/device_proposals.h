// Candidates of a round: sums of hessians by code and the proposed codes are made on the device,
// and the host's own code proposes bins from the sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/parallel.h"
#include "bin/propose.h"
#include "cuda/device.h"
#include "grow/device/records/device_records.h"
#include "table/codes.h"

namespace arboost::cuda {

struct DeviceState;

class DeviceProposals {
 public:
  DeviceProposals(DeviceState& state, const Codes& table) : state_(state), table_(table) {}

  // Proposes bins from the hessians of all training rows, and codes their rows by them.
  void update(Proposal& proposal, const PairRows& pairs, Team& team);

 private:
  DeviceState& state_;
  const Codes& table_;
  DeviceArray<std::uint32_t> hessians_;  // of the training rows, summed over the outputs
  DeviceArray<std::int64_t> sums_;
  DeviceArray<ProposedColumn> columns_;
  DeviceArray<std::uint16_t> bins_;
};

}  // namespace arboost::cuda
