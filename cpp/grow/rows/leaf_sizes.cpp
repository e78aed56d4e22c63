// Cost: one pass over the rows of a tree, and one over the rows of a node for each split in doubt
// that would be the node's best.
#include "grow/rows/leaf_sizes.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "grow/search/node_score.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 65536;

}  // namespace

LeafSizes::LeafSizes(const Codes& codes, const TreeParams& params, std::size_t outputs,
                     bool count_doubts)
    : codes_(codes),
      params_(params),
      outputs_(static_cast<std::int64_t>(outputs)),
      count_doubts_(count_doubts) {}

void LeafSizes::start_tree(const RowPartition& rows, Collective& workers, Team& team) {
  if (!params_.may_count()) return start_tree();
  std::int64_t extremes[2] = {-std::numeric_limits<std::int64_t>::max(), 0};  // of -h and h
  const Element* elements = rows.elements(GrowNode{});                        // of the root
  std::mutex mutex;
  team.for_chunks(0, rows.rows().n, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    const auto [low, high] = rows.hessian_range(elements + begin, end - begin);
    std::lock_guard lock(mutex);
    extremes[0] = std::max(extremes[0], -low);
    extremes[1] = std::max(extremes[1], high);
  });
  workers.max(extremes);
  start_tree(-extremes[0], extremes[1], rows.all_rows());
}

void LeafSizes::start_tree(std::int64_t low, std::int64_t high, std::size_t n_rows) {
  low_ = std::min(low, high);               // no rows
  high_ = std::max(high, std::int64_t{1});  // all empty
  least_h_ = 1;
  counting_ = choose();
  if (counting_ == Counting::always) return;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto n = static_cast<std::int64_t>(n_rows);
  const std::int64_t h = std::min(params_.min_samples_leaf, n) * low_ / outputs_;  // rounded down
  least_h_ = static_cast<std::int32_t>(std::clamp(h, std::int64_t{1}, most));
}

// Rows of sparse columns are slow to count, and random thresholds have no second choice to offer.
// Categories, and searches for any feature that varies, must know every code that occurs.
Counting LeafSizes::choose() const {
  if (params_.count_rows) return Counting::always;
  if (low_ == high_ && low_ > 0 && low_ % outputs_ == 0) return Counting::none;
  if (count_doubts_) return Counting::always;
  if (codes_.width == 4 || codes_.sparse.size() > 0 || params_.random_cuts ||
      params_.candidates == Candidates::per_node)
    return Counting::always;
  const bool needs_codes = params_.allow_zero_gain || !codes_.is_category.empty();
  if (low_ == 0 && needs_codes) return Counting::always;
  return Counting::without_histograms;
}

// Missing rows of zero sums are not seen without counts.
bool LeafSizes::may_overlook_missing(std::size_t feature, const FeatureSplit& split) const {
  return any_empty() && codes_.has_missing[feature] != 0 && !split.missing_seen;
}

std::int64_t LeafSizes::certain_h() const {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return params_.min_samples_leaf > most / high_ ? most : params_.min_samples_leaf * high_;
}

bool LeafSizes::is_certain(std::size_t feature, const FeatureSplit& split,
                           const std::int64_t* left_sums, const std::int64_t* sums) const {
  const auto outputs = static_cast<std::size_t>(outputs_);
  const std::int64_t left = sum_of_h(left_sums, outputs), all = sum_of_h(sums, outputs);
  return std::min(left, all - left) >= certain_h() && !may_overlook_missing(feature, split);
}

std::span<const std::int64_t> LeafSizes::count(std::size_t feature, const Element* elements,
                                               std::size_t n,
                                               std::vector<std::int64_t>& buffer) const {
  const FeatureStorage& storage = codes_.where[feature];
  const bool shared = storage.kind == Storage::shared;
  const std::size_t n_codes = codes_.n_codes(feature);
  const std::size_t n_stored = shared ? 256 : n_codes;  // codes of the stored column
  buffer.assign(n_stored + (shared ? n_codes : 0), 0);
  std::int64_t* counts = buffer.data();
  const auto each_row = [&](const auto* column) {
    for (std::size_t i = 0; i < n; ++i) ++counts[column[row_of(elements[i])]];
  };
  codes_.width == 1 ? each_row(codes_.column<std::uint8_t>(storage.store))
                    : each_row(codes_.column<std::uint16_t>(storage.store));
  if (!shared) return {counts, n_codes};
  for (std::uint32_t stored = 0; stored < n_stored; ++stored)
    if (counts[stored] > 0) counts[n_stored + codes_.decode(feature, stored)] += counts[stored];
  return {counts + n_stored, n_codes};
}

bool LeafSizes::has_enough(std::size_t feature, const FeatureSplit& split,
                           std::span<const std::int64_t> counts) const {
  const std::uint32_t n_bins = codes_.n_bins[feature];
  const bool has_missing = counts.size() > n_bins;
  if (may_overlook_missing(feature, split) && counts[n_bins] > 0) return false;
  std::int64_t left = 0, all = 0;
  for (std::uint32_t code = 0; code < counts.size(); ++code) {
    const bool is_missing = has_missing && code == n_bins;
    const bool is_left = split.by_set ? holds(split.left, code)
                         : is_missing ? split.missing_left
                                      : code <= split.bin;
    all += counts[code];
    if (is_left) left += counts[code];
  }
  return std::min(left, all - left) >= params_.min_samples_leaf;
}

}  // namespace arboost
