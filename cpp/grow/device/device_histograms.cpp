// Histograms on the device: their memory, and the launches that build them.
#include <algorithm>
#include <bit>
#include <utility>  // exchange

#include "grow/device/device_batches.h"
#include "grow/device/device_state.h"

namespace arboost::cuda {

std::int64_t* DeviceBatches::acquire() {
  const std::size_t size = slots_.size();
  if (free_.empty()) {
    constexpr std::size_t block_bytes = std::size_t{32} << 20;
    const std::size_t n =
        std::clamp<std::size_t>(block_bytes / (size * sizeof(std::int64_t)), 1, 256);
    histograms_.emplace_back(n * size);
    for (std::size_t j = 0; j < n; ++j) free_.push_back(histograms_.back().data() + j * size);
  }
  ++in_use_;
  std::int64_t* histogram = free_.back();
  free_.pop_back();
  return histogram;
}

void DeviceBatches::forget(GrowNode& node) {
  if (node.histogram == nullptr) return;
  free_.push_back(std::exchange(node.histogram, nullptr));
  --in_use_;
}

std::size_t DeviceBatches::batch_size() const {
  const std::size_t bytes = 2 * slots_.size() * sizeof(std::int64_t);
  constexpr std::size_t most = 1024;
  return std::clamp<std::size_t>(params_.histogram_bytes / std::max<std::size_t>(1, bytes), 1,
                                 most);
}

// Plans the blocks that add `n_rows` rows, at most, to the histograms of a batch.
void DeviceBatches::plan_histograms(std::size_t n_rows, BatchWork& work) {
  DeviceState& s = state_;
  constexpr std::size_t rows_per_share = 2048, most_part_bytes = std::size_t{512} << 20;
  const auto processors = static_cast<std::size_t>(s.device.multiprocessors());
  const std::size_t n_nodes = work.n_nodes;
  const std::size_t shares = std::clamp<std::size_t>(std::max(n_rows / rows_per_share, n_nodes), 1,
                                                     tables_of_processor * processors);
  work.n_shares = static_cast<std::uint32_t>(shares);
  const std::size_t n_parts = shares + 2 * n_nodes, size = slots_.size();
  const bool in_tables = codes_.width == 1 && codes_.n_stores > 0 && codes_.sparse.size() == 0;
  work.parts = nullptr;
  if (!in_tables || n_parts * size * sizeof(std::int64_t) > most_part_bytes) return;
  make_room(parts_, std::bit_ceil(n_parts * size));
  work.parts = parts_.data();
  // Parts of a histogram that few blocks have written are added up by the searches, which then must
  // be over all features of the tree.
  constexpr std::size_t most_parts = 64;
  const bool searches_all = params_.colsample_bylevel >= 1 && params_.colsample_bynode >= 1 &&
                            params_.interactions.empty();
  const bool is_root = work.n_tiles == 0;
  const bool is_one_feature = codes_.is_plain();  // that adds up the parts of a slot
  if (searches_on_device_ && searches_all && is_one_feature && !is_root &&
      shares / n_nodes <= most_parts)
    work.is_combined = 0;
}

// Adds the rows of the batch's segments to their histograms.
void DeviceBatches::launch_histograms(const BatchWork& work) {
  DeviceState& s = state_;
  DeviceCodes codes = s.table->codes();
  codes.first_sparse = static_cast<std::uint32_t>(slots_.slots().first_sparse);
  RowValues values = tree_->values;
  values.channels = static_cast<std::uint32_t>(slots_.channels());
  const std::size_t blocks = 16 * static_cast<std::size_t>(s.device.multiprocessors());
  if (codes_.width == 1 && codes_.n_stores > 0) {
    std::uint32_t n_codes = 1;
    for (std::size_t j = 0; j < codes_.n_stores; ++j)
      n_codes = std::max(n_codes, codes_.first_slot[j + 1] - codes_.first_slot[j]);
    const std::size_t bytes = n_codes * 64 * sizeof(std::int32_t);
    s.queue.launch(s.device.kernel("histograms", bytes),
                   {work.n_shares, (codes_.n_stores + 31) / 32, slots_.channels()}, table_threads,
                   bytes, codes, first_slot_.data(), n_codes, work, s.elements[0].data(),
                   s.elements[1].data(), values);
  } else if (codes_.n_stores > 0) {
    s.queue.launch(s.device.kernel("histograms_wide"), {blocks}, threads, 0, codes,
                   first_slot_.data(), work, s.elements[0].data(), s.elements[1].data(), values);
  }
  if (codes_.sparse.size() > 0)
    s.queue.launch(s.device.kernel("histograms_sparse"), {blocks}, threads, 0, codes, work,
                   s.elements[0].data(), s.elements[1].data(), values);
  if (!work.is_combined) return;
  const std::uint32_t parts_of_node = work.parts == nullptr ? 1 : work.n_shares / work.n_nodes;
  const std::uint32_t n_adders = std::bit_floor(std::clamp(parts_of_node / 4, 1u, 8u));
  s.queue.launch(
      s.device.kernel("combine"),
      {std::min<std::size_t>(32 * n_adders, blocks_for(slots_.size(), threads / n_adders)),
       2 * work.n_nodes},
      threads, 0, work, n_adders);
}

// Histograms of all trees before, of other channels or of a tree that was interrupted, are free.
void DeviceBatches::free_histograms() {
  free_.clear();
  in_use_ = 0;
  const std::size_t size = slots_.size();
  for (auto& block : histograms_)
    for (std::size_t j = 0; j + size <= block.size(); j += size) free_.push_back(block.data() + j);
}

}  // namespace arboost::cuda
