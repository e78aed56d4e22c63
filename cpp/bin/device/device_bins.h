// Columns in device memory -> edges, storage plan and codes: the same as of the host's columns.
//
// The host decides on edges and plan, from values of the same rows that it would sample; all rows
// are read on the device alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/codes/plan.h"
#include "bin/device/device_columns.h"
#include "table/codes.h"

namespace arboost::cuda {

// As arboost::quantiles (bin/edges/quantiles.h).
std::vector<std::vector<double>> quantiles(const DeviceColumns& table, const Rows& rows,
                                           std::span<const double> weights, std::size_t max_bins,
                                           Team& team);

// As arboost::plan_storage (bin/codes/plan.h).
StoragePlan plan_storage(const DeviceColumns& table, const Rows& rows, const Edges& edges,
                         const PlanOptions& options, Team& team);

// Codes in the memory of a device, in both orders.
class CodesOnDevice final : public DistantCodes {
 public:
  explicit CodesOnDevice(int ordinal) : device(ordinal) {}
  ~CodesOnDevice() override;

  const int device;
  DeviceArray<std::uint8_t> by_row, by_column;

 private:
  void copy(const Codes& codes) override;
};

// As arboost::encode (bin/codes/encode.h), but the codes stay on the device until the host reads
// them. Throws DeviceError where they do not fit there.
Codes encode(const DeviceColumns& table, const Rows& rows, const Edges& edges,
             const std::vector<std::uint8_t>& categorical, const StoragePlan* plan, Team& team);

// The same for a table of the host, whose values are sent to a device; without sparse columns. They
// are sent in chunks, so that the device needs room for the codes only.
Codes encode_on(int device, const Columns& table, const Rows& rows, const Edges& edges,
                const std::vector<std::uint8_t>& categorical, const StoragePlan* plan, Team& team);

}  // namespace arboost::cuda
