// Rows of a node -> histogram. Large nodes are split among threads: by rows, each thread with a
// histogram of its own, or by columns of one histogram where it is large. Integer sums make the
// total independent of the split.
#include "grow/rows/histograms.h"

#include <algorithm>
#include <cstring>
#include <numeric>  // iota

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 8192;

// Rows that pay for clearing a histogram for a member of the team, and adding it up.
constexpr std::size_t rows_per_member = 4096;

constexpr std::size_t slots_per_sum = 8192;  // that one member adds up at a time, over all parts

// Slots of the columns that are built together where columns are divided: they stay in the cache.
constexpr std::size_t block_slots = 32768;

// The same where a thread adds rows of many columns, block by block: sums stay in the cache nearest
// to it, and the codes of a block's rows in the next one.
constexpr std::size_t near_slots = 6400, block_rows = 1024;

// Histograms of more bytes are divided by columns, whatever the number of rows: they would not stay
// in the cache.
constexpr std::size_t cached_bytes = std::size_t{4} << 20;

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
  every_store_.resize(codes.n_stores);
  std::iota(every_store_.begin(), every_store_.end(), 0u);
  const auto rows = static_cast<double>(std::max<std::size_t>(1, codes.n_rows));
  updates_per_row_ = std::max(1.0, static_cast<double>(codes.n_stores) +
                                       static_cast<double>(codes.sparse.n_stored()) / rows);
}

void Histograms::use_features(std::span<const std::uint32_t> features) {
  stores_.clear();
  bool any_sparse = false;
  for (const std::uint32_t f : features) {
    const FeatureStorage& storage = codes_.where[f];
    if (storage.kind == Storage::sparse)
      any_sparse = true;
    else
      stores_.push_back(storage.store);
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

std::vector<std::size_t> Histograms::column_starts() const {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < slots_.n_stores; ++i)
    starts.push_back(slots_.first[slots_.stores == nullptr ? i : slots_.stores[i]]);
  const bool any_sparse = slots_.first_sparse < slots_.n_slots;
  for (std::size_t c = 0; any_sparse && c < codes_.sparse.size(); ++c)
    starts.push_back(slots_.first_sparse + codes_.sparse.first_slot[c]);
  starts.push_back(slots_.n_slots);
  return starts;
}

Histograms::ColumnSlots Histograms::column_of(std::size_t feature) const {
  const FeatureStorage& storage = codes_.where[feature];
  const std::size_t next = storage.store + std::size_t{1};
  if (storage.kind != Storage::sparse)
    return {slots_.first[storage.store],
            codes_.first_slot[next] - codes_.first_slot[storage.store]};
  const std::vector<std::uint32_t>& first = codes_.sparse.first_slot;
  return {slots_.first_sparse + first[storage.store], first[next] - first[storage.store]};
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

bool Histograms::has_room(std::size_t n_more) const {
  return (in_use_.load(std::memory_order_relaxed) + n_more) * bytes() <= memory_limit_;
}

bool Histograms::has_room_for_node(std::size_t n_others, std::size_t n_members) const {
  return 16 * n_members * bytes() <= memory_limit_ || has_room(2 * (n_others + 1));
}

bool Histograms::divides_columns(std::size_t n_parts) const {
  return slots_.n_stores > block_columns() && (bytes() > cached_bytes || !has_room(n_parts));
}

// Rows are read by cache lines, so that a block has some columns at least.
std::size_t Histograms::block_columns() const {
  const std::size_t per_column = size() / std::max<std::size_t>(1, slots_.n_stores);
  return std::max<std::size_t>(16, block_slots / std::max<std::size_t>(1, per_column));
}

// Blocks of a few columns would cost more than they save: elements are read again for each.
std::size_t Histograms::cached_columns() const {
  const std::size_t per_column = size() / std::max<std::size_t>(1, slots_.n_stores);
  const std::size_t width = near_slots / std::max<std::size_t>(1, per_column);
  return width < 16 ? std::max<std::size_t>(1, slots_.n_stores) : width;
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
  if (divides_columns(n < shared_node_rows ? 1 : static_cast<std::size_t>(team.size())))
    return build_columns(codes, rows, node, member, team);
  std::vector<std::int64_t*> parts(static_cast<std::size_t>(team.size()), nullptr);
  // Chunks small enough to occupy all members of large nodes. Smaller nodes occupy only as many as
  // pay for clearing and adding up one histogram each: the others have nodes of their own.
  const auto all = static_cast<std::size_t>(team.size());
  const std::size_t members = std::min(all, std::max<std::size_t>(2, n / rows_per_member));
  const std::size_t share = n / (4 * all);
  const std::size_t grain = n < shared_node_rows ? n
                            : members < all      ? (n + members - 1) / members
                                                 : std::clamp(share, chunk_rows / 4, chunk_rows);
  team.for_chunks(member, n, grain, [&](std::size_t begin, std::size_t end, int who) {
    std::int64_t*& part = parts[static_cast<std::size_t>(who)];
    if (part == nullptr) part = acquire_zeroed();
    add(codes.row_codes(), rows, elements + begin, end - begin, 0, 1, part);
  });
  std::erase(parts, nullptr);
  std::int64_t* total = parts.front();
  if (parts.size() == 1) return total;
  const std::size_t slots_of_chunk = std::max<std::size_t>(512, slots_per_sum / (parts.size() - 1));
  team.for_chunks(member, size(), slots_of_chunk, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = 1; i < parts.size(); ++i)
      grow_kernels().add(total + begin, parts[i] + begin, end - begin);
  });
  for (std::size_t i = 1; i < parts.size(); ++i) release(parts[i]);
  return total;
}

void Histograms::add(const RowCodes& codes, const RowPartition& rows, const Element* elements,
                     std::size_t n, std::size_t part, std::size_t n_parts,
                     std::int64_t* histogram) const {
  const RowSums sums = sums_of(rows);
  const std::size_t begin = slots_.n_stores * part / n_parts;
  const std::size_t n_columns = slots_.n_stores * (part + 1) / n_parts - begin;
  const std::size_t n_blocks = std::max<std::size_t>(1, n_columns / cached_columns());
  const std::size_t n_together = n_blocks == 1 ? n : block_rows;
  for (std::size_t at = 0; at < n; at += n_together)
    for (std::size_t block = 0; block < n_blocks; ++block)
      add_columns(codes, sums, elements + at, std::min(n_together, n - at),
                  begin + n_columns * block / n_blocks, begin + n_columns * (block + 1) / n_blocks,
                  histogram);
  if (part + 1 < n_parts || slots_.first_sparse == slots_.n_slots) return;
  Slots sparse = slots_;
  sparse.n_stores = 0;
  grow_kernels().accumulate(codes, sparse, sums, elements, n, false, histogram);
}

void Histograms::add_columns(const RowCodes& codes, const RowSums& sums, const Element* elements,
                             std::size_t n, std::size_t begin, std::size_t end,
                             std::int64_t* histogram) const {
  Slots some = slots_;
  some.n_stores = end - begin;
  some.n_slots = some.first_sparse;
  RowCodes moved = codes;
  if (slots_.stores != nullptr) {
    some.stores += begin;
  } else {
    // As if the first of these columns were the first of the table.
    moved.first += begin * static_cast<std::size_t>(codes.width);
    some.first += begin;
    if (slots_.stride != 0 && channels_ == 1) histogram += begin * slots_.stride;
  }
  grow_kernels().accumulate(moved, some, sums, elements, n, false, histogram);
}

std::int64_t* Histograms::build_columns(const Codes& codes, const RowPartition& rows,
                                        const GrowNode& node, int member, Team& team) {
  std::int64_t* total = acquire();
  const std::size_t n_stores = slots_.n_stores, width = block_columns();
  const auto add_rows = [&](const Slots& block, std::size_t first, std::size_t last) {
    std::fill(total + first * channels_, total + last * channels_, 0);
    grow_kernels().accumulate(codes.row_codes(), block, sums_of(rows), rows.elements(node),
                              node.n_rows(), false, total);
  };
  const auto add_block = [&](std::size_t begin, std::size_t end) {
    const std::uint32_t* stores = slots_.stores == nullptr ? every_store_.data() : slots_.stores;
    const Slots block{slots_.first, stores + begin,      0,
                      end - begin,  slots_.first_sparse, slots_.first_sparse};
    add_rows(block, slots_.first[stores[begin]],
             end < n_stores ? slots_.first[stores[end]] : slots_.first_sparse);
  };
  const std::size_t n_blocks = (n_stores + width - 1) / width;
  const bool any_sparse = slots_.first_sparse < slots_.n_slots;
  team.for_chunks(
      member, n_blocks + (any_sparse ? 1 : 0), 1, [&](std::size_t block, std::size_t, int) {
        const std::size_t begin = block * width;
        if (block < n_blocks) return add_block(begin, std::min(begin + width, n_stores));
        const Slots sparse{slots_.first, slots_.stores, 0, 0, slots_.first_sparse, slots_.n_slots};
        add_rows(sparse, slots_.first_sparse, slots_.n_slots);
      });
  return total;
}

}  // namespace arboost
