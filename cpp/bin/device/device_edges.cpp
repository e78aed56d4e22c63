// Samples of the rows -> edges and plan. Cost: two small copies, and one scan on the device of
// columns with few distinct values in the sample.
#include <algorithm>
#include <bit>
#include <numeric>

#include "base/limits.h"
#include "bin/device/device_bins.h"
#include "bin/device/device_work.h"
#include "bin/edges/keys.h"
#include "bin/edges/quantiles.h"

namespace arboost::cuda {
namespace {

// Replaces the edges of columns whose distinct values, of all rows, fit into max_bins.
void complete(const DeviceColumns& table, const Rows& rows, const std::vector<FewValues>& few,
              std::size_t max_bins, Team& team, std::vector<std::vector<double>>& edges) {
  if (few.empty()) return;
  Device& device = Device::number(table.device);
  Device::Use use(device);
  Queue queue;
  const std::size_t n_slots = std::bit_ceil(4 * max_bins);
  std::vector<double> known;
  for (const FewValues& values_of_column : few)
    known.insert(known.end(), values_of_column.values.begin(), values_of_column.values.end());
  const DeviceArray<double> known_there = queue.send(known);
  DeviceArray<std::uint32_t> n_found(few.size());
  DeviceArray<unsigned long long> slots(few.size() * n_slots);
  queue.fill_zero(n_found.address(), few.size() * sizeof(std::uint32_t));
  queue.fill_ones(slots.address(), slots.size() * sizeof(unsigned long long));
  std::vector<ValueSearch> searches;
  std::size_t first = 0;
  for (std::size_t k = 0; k < few.size(); ++k) {
    searches.push_back({table.columns[few[k].column], known_there.data() + first,
                        static_cast<std::uint32_t>(few[k].values.size()),
                        static_cast<std::uint32_t>(n_slots), static_cast<std::uint32_t>(max_bins),
                        n_found.data() + k, slots.data() + k * n_slots});
    first += few[k].values.size();
  }
  const DeviceArray<ValueSearch> sent = queue.send(searches);
  const DeviceRowIndex index(device, rows, &team);
  queue.launch(device.kernel("find_values"), {blocks_of(device, rows.size()), few.size()},
               block_threads, 0, sent.data(), index.rows());
  const std::vector<std::uint32_t> counts = receive(n_found, queue);
  const std::vector<unsigned long long> keys = receive(slots, queue);
  for (std::size_t k = 0; k < few.size(); ++k) {
    std::vector<double> values = few[k].values;
    if (values.size() + counts[k] > max_bins) continue;
    for (std::size_t slot = k * n_slots; slot < (k + 1) * n_slots; ++slot)
      if (keys[slot] != no_key) values.push_back(value_of(std::uint64_t{keys[slot]}));
    std::sort(values.begin(), values.end());
    edges[few[k].column] = cut(values, {}, max_bins);
  }
}

}  // namespace

std::vector<std::vector<double>> quantiles(const DeviceColumns& table, const Rows& rows,
                                           std::span<const double> weights, std::size_t max_bins,
                                           Team& team) {
  check_row_count(rows.size());
  std::vector<std::uint32_t> all(table.columns.size());
  std::iota(all.begin(), all.end(), 0u);
  EdgeRows sample = choose_edge_rows(rows, team);
  if (sample.complete) {
    const Columns values = gather(table, all, rows, &team);
    return arboost::quantiles(values, Rows(values.n_rows, nullptr), weights, max_bins, team);
  }
  const Columns values = gather(table, all, Rows(sample.size, sample.rows.data()), &team);
  std::iota(sample.rows.begin(), sample.rows.end(), RowId{0});
  std::vector<FewValues> few;
  std::vector<std::vector<double>> edges =
      sampled_edges(values, sample, weights, max_bins, team, few);
  complete(table, rows, few, max_bins, team, edges);
  return edges;
}

StoragePlan plan_storage(const DeviceColumns& table, const Rows& rows, const Edges& edges,
                         const PlanOptions& options, Team& team) {
  Columns none;  // of the same columns, without values
  none.columns.resize(table.columns.size());
  const std::vector<std::uint32_t> read = shareable(none, edges, options, rows.size());
  if (read.empty()) return plan_from(none, {}, rows.size(), edges, options, team);
  const std::vector<RowId> sample = choose_plan_rows(rows, team);
  const Columns values = gather(table, read, Rows(sample.size(), sample.data()), &team);
  std::vector<RowId> places(sample.size());
  std::iota(places.begin(), places.end(), RowId{0});
  return plan_from(values, places, rows.size(), edges, options, team);
}

}  // namespace arboost::cuda
