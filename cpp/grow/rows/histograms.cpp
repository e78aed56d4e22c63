// Rows of a node -> histogram. Large nodes are split among threads, each with a histogram of its
// own; integer sums make the total independent of the split.
#include "grow/rows/histograms.h"

#include <algorithm>
#include <cstring>

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 8192;

}  // namespace

Histograms::Histograms(const Codes& codes, std::size_t memory_limit, Workspace& workspace)
    : codes_(codes), memory_limit_(memory_limit), space_(workspace) {
  if (codes.first_slot.empty()) return;  // ranks: nodes are searched without histograms
  std::uint32_t widest = 0;
  for (std::size_t s = 0; s < codes.n_stores; ++s)
    widest = std::max(widest, codes.first_slot[s + 1] - codes.first_slot[s]);
  for (const std::uint32_t n : codes.n_bins) max_bins_ = std::max<std::size_t>(max_bins_, n);
  // Columns at equal distances save a table look-up for each update, at the price of some unused
  // slots: worth it while at most a quarter of the histogram is unused.
  const std::size_t uniform = std::size_t{widest} * codes.n_stores;
  const bool use_uniform = uniform <= codes.first_slot.back() * std::size_t{4} / 3;
  first_slot_ = codes.first_slot;
  if (use_uniform)
    for (std::size_t s = 0; s <= codes.n_stores; ++s)
      first_slot_[s] = static_cast<std::uint32_t>(s * widest);
  all_slots_ = first_slot_.back() + codes.sparse.n_slots();
  slots_ = {first_slot_.data(), nullptr,   use_uniform ? widest : 0, codes.n_stores,
            first_slot_.back(), all_slots_};
  const auto rows = static_cast<double>(std::max<std::size_t>(1, codes.n_rows));
  updates_per_row_ = std::max(1.0, static_cast<double>(codes.n_stores) +
                                       static_cast<double>(codes.sparse.n_stored()) / rows);
}

void Histograms::use_features(std::span<const std::uint32_t> features) {
  stores_.clear();
  bool any_sparse = false;
  for (const std::uint32_t f : features) {
    const Place& place = codes_.where[f];
    if (place.storage == Storage::sparse)
      any_sparse = true;
    else
      stores_.push_back(place.store);
  }
  std::sort(stores_.begin(), stores_.end());
  stores_.erase(std::unique(stores_.begin(), stores_.end()), stores_.end());
  std::uint32_t next = 0;
  for (const std::uint32_t s : stores_) {
    first_slot_[s] = next;
    next += codes_.first_slot[s + 1] - codes_.first_slot[s];
  }
  slots_ = {first_slot_.data(), stores_.data(), 0,
            stores_.size(),     next,           next + (any_sparse ? codes_.sparse.n_slots() : 0)};
}

std::int64_t* Histograms::acquire() {
  in_use_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    space_.histograms.emplace_back(all_slots_ * channels_);  // enough for any features
    return space_.histograms.back().data();
  }
  std::int64_t* histogram = free_.back();
  free_.pop_back();
  return histogram;
}

std::int64_t* Histograms::acquire_zeroed() {
  std::int64_t* histogram = acquire();
  std::fill_n(histogram, size(), 0);  // null if no feature is stored
  return histogram;
}

void Histograms::release(std::int64_t* histogram) {
  if (histogram == nullptr) return;
  in_use_.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  free_.push_back(histogram);
}

bool Histograms::scarce() const {
  return in_use_.load(std::memory_order_relaxed) * size() * sizeof(std::int64_t) > memory_limit_;
}

void Histograms::release_all() {
  in_use_.store(0, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  free_.clear();
  if (space_.histogram_size != all_slots_ * channels_) space_.histograms.clear();
  space_.histogram_size = all_slots_ * channels_;
  for (auto& buffer : space_.histograms) free_.push_back(buffer.data());
}

std::int64_t* Histograms::build(const Codes& codes, const RowPartition& rows, const GrowNode& node,
                                int member, Team& team) {
  const Element* elements = rows.elements(node);
  const std::size_t n = node.n_rows();
  if (n == 0) return acquire_zeroed();  // a worker may hold none of a node's rows
  const RowSums sums = sums_of(rows);
  std::vector<std::int64_t*> parts(static_cast<std::size_t>(team.size()), nullptr);
  // Chunks small enough to occupy all members, but large enough to pay for adding up one histogram
  // a member.
  const std::size_t share = n / (4 * static_cast<std::size_t>(team.size()));
  const std::size_t grain =
      n < shared_node_rows ? n : std::clamp(share, chunk_rows / 4, chunk_rows);
  team.for_chunks(member, n, grain, [&](std::size_t begin, std::size_t end, int who) {
    std::int64_t*& part = parts[static_cast<std::size_t>(who)];
    if (part == nullptr) part = acquire_zeroed();
    grow_kernels().accumulate(codes, slots_, sums, elements + begin, end - begin, false, part);
  });
  std::erase(parts, nullptr);
  std::int64_t* total = parts.front();
  if (parts.size() == 1) return total;
  team.for_chunks(member, size(), 8192, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = 1; i < parts.size(); ++i)
      grow_kernels().add(total + begin, parts[i] + begin, end - begin);
  });
  for (std::size_t i = 1; i < parts.size(); ++i) release(parts[i]);
  return total;
}

}  // namespace arboost
