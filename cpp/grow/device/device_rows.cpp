// Start of a tree: its rows, and their scale.
#include "grow/device/device_rows.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "grow/device/device_state.h"

namespace arboost::cuda {
namespace {

// Searches of the device are for the gain of boosting: over one-byte codes, and two-byte codes
// without sparse columns. Those for vector leaves are over one-byte codes of numbers.
bool device_searches(const Codes& codes, const TreePolicy& policy) {
  bool are_numbers = codes.sparse.size() == 0;
  for (std::size_t f = 0; f < codes.n_features; ++f)
    are_numbers = are_numbers && !codes.has_levels(f);
  const bool fits = policy.width() > 1 ? codes.width == 1 && are_numbers
                                       : codes.width == 1 || codes.sparse.size() == 0;
  return fits && !policy.params().random_cuts && !policy.params().allow_zero_gain &&
         policy.params().criterion == Criterion::quadratic &&
         policy.params().candidates != Candidates::per_node;
}

// Bytes of a row but its codes: elements, pairs, scores, target and leaf.
std::size_t row_bytes(std::size_t width) {
  return 2 * sizeof(Element) + sizeof(std::uint32_t) +
         width * (sizeof(FixedPair) + sizeof(PackedSum) + sizeof(double)) + 2 * sizeof(double);
}

// Throws before any work where a table does not fit.
void check_memory(const Device& device, const Codes& table, std::size_t bytes_needed,
                  std::size_t n_rows, std::size_t width) {
  const std::size_t needed = bytes_of(table) + bytes_needed + n_rows * row_bytes(width);
  const std::size_t free = device.free_bytes();
  if (needed <= free) return;
  const double share = static_cast<double>(free) / static_cast<double>(needed);
  throw DeviceError("the table needs " + std::to_string(needed >> 20) +
                    " MiB on the CUDA device, and " + std::to_string(free >> 20) +
                    " MiB are free: about " +
                    std::to_string(static_cast<std::size_t>(share * static_cast<double>(n_rows))) +
                    " of its " + std::to_string(n_rows) +
                    " rows would fit. Use fewer rows or features, another device, or "
                    "device=\"cpu\".");
}

}  // namespace

std::size_t growers_that_fit(const Codes& codes, std::size_t n_rows, std::size_t width,
                             int device) {
  // Of trees that grow as a whole: samples, rows by number, and two nodes a row.
  const std::size_t of_sample = 4 * sizeof(std::uint32_t) + width * sizeof(FixedPair);
  const std::size_t of_nodes = 2 * sizeof(TreeNode) + sizeof(OpenNode) / 2;
  const std::size_t bytes_per_tree = n_rows * (row_bytes(width) + of_sample + of_nodes);
  const std::size_t free = Device::number(device).free_bytes() / 10 * 9, table = bytes_of(codes);
  return std::max<std::size_t>(1, free > table ? (free - table) / bytes_per_tree : 0);
}

DeviceRows::DeviceRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
                       TreePolicy& policy, Workspace& workspace)
    : table_(table),
      codes_(codes),
      policy_(policy),
      params_(policy.params()),
      table_rows_(table_rows.begin(), table_rows.end()),
      n_training_(table_rows.empty() ? codes.n_rows : table_rows.size()),
      searches_on_device_(device_searches(codes, policy)),
      space_(workspace),
      host_rows_(codes, {}, policy.width(), false, params_.sum_bits, workspace, alone_),
      sizes_(codes, params_, policy.width(), true),
      slots_(codes, params_.histogram_bytes, workspace),
      search_(codes, policy, {.rows = host_rows_, .histograms = slots_, .sizes = sizes_}) {
  if (params_.criterion == Criterion::absolute_error)
    throw DeviceError(
        "the criterion \"absolute_error\" does not run on a CUDA device: use squared_error, or "
        "device=\"cpu\"");
  Device& device = Device::number(params_.device);
  check_memory(device, table, &codes == &table ? 0 : buffer_bytes(codes), n_training_,
               policy.width());
  Device::Use use(device);
  state_ = std::make_unique<DeviceState>(device, table, codes);
  DeviceState& s = *state_;
  if (!table_rows_.empty()) {
    s.replace(table_rows_.data(), table_rows_.size(), s.table_rows);
  }
  if (!table_rows_.empty() && params_.allow_zero_gain) {
    s.position_of_row = DeviceArray<std::uint32_t>(codes.n_rows);
    s.queue.launch(s.device.kernel("number_rows"), {blocks_for(n_training_)}, threads, 0,
                   RowNumbers{nullptr, s.table_rows.data()},
                   static_cast<std::uint32_t>(n_training_), s.position_of_row.data());
  }
  s.leaf_of_row = DeviceArray<std::uint32_t>(codes.n_rows);
  const std::size_t n_stores = codes.n_stores;
  s.first_slot = DeviceArray<std::uint32_t>(n_stores + 1);
  std::vector<std::uint32_t> first_slot(slots_.slots().first, slots_.slots().first + n_stores);
  first_slot.push_back(static_cast<std::uint32_t>(slots_.slots().first_sparse));
  s.queue.upload(first_slot.data(), n_stores + 1, s.first_slot);
  send_columns();
  if (DeviceTrees::grows(codes, policy))
    trees_ = std::make_unique<DeviceTrees>(s, codes, policy, search_);
  s.queue.wait();
}

// Sends the columns of the features, and the groups of grouped categories.
void DeviceRows::send_columns() {
  DeviceState& s = *state_;
  std::vector<FeatureColumn> columns;
  std::vector<GroupColumn> groups;
  std::vector<std::uint8_t> own_codes;
  s.groups = DeviceArray<GroupColumn>(params_.grouped.size());
  s.own_codes = DeviceArray<std::uint8_t>(256 * codes_.n_features);
  for (std::size_t f = 0; f < codes_.n_features; ++f) {
    const ColumnStorage storage = storage_of(f);
    const LevelGroups* grouped = groups_of(&params_.grouped, f);
    is_mixed_ =
        is_mixed_ || codes_.width == 2 || codes_.has_levels(f) || !storage.own_codes.empty();
    columns.push_back(
        {.first_slot = storage.first_slot,
         .n_bins = codes_.n_bins[f],
         .direction = params_.monotone.empty() ? 0 : params_.monotone[f],
         .has_missing = codes_.has_missing[f],
         .is_category = codes_.has_levels(f) ? 1u : 0u,
         .groups = grouped == nullptr ? nullptr : s.groups.data() + groups.size(),
         .own_codes = storage.own_codes.empty() ? nullptr : s.own_codes.data() + own_codes.size(),
         .n_slots = static_cast<std::uint32_t>(storage.own_codes.size()),
         .usual = storage.usual});
    own_codes.insert(own_codes.end(), storage.own_codes.begin(), storage.own_codes.end());
    if (grouped == nullptr) continue;
    GroupColumn& group = groups.emplace_back();
    group.shared = grouped->shared;
    group.n = static_cast<std::uint32_t>(grouped->order.size());
    std::copy(grouped->order.begin(), grouped->order.end(), group.order);
  }
  s.send(columns, s.columns);
  s.send(groups, s.groups);
  s.replace(own_codes.data(), own_codes.size(), s.own_codes);
}

// Slots of a feature's stored column.
DeviceRows::ColumnStorage DeviceRows::storage_of(std::size_t feature) const {
  const FeatureStorage& storage = codes_.where[feature];
  const Slots& slots = slots_.slots();
  ColumnStorage on_device;
  if (storage.kind == Storage::sparse) {
    on_device.first_slot =
        static_cast<std::uint32_t>(slots.first_sparse) + codes_.sparse.first_slot[storage.store];
    on_device.usual = storage.usual;
    for (std::uint32_t rank = 0; rank < storage.n_others; ++rank)
      on_device.own_codes.push_back(static_cast<std::uint8_t>(storage.code_of(rank)));
    return on_device;
  }
  on_device.first_slot = slots.first[storage.store];
  if (storage.kind == Storage::single) return on_device;
  const std::uint32_t n_slots =
      codes_.first_slot[storage.store + std::size_t{1}] - codes_.first_slot[storage.store];
  for (std::uint32_t code = 0; code < n_slots; ++code)
    on_device.own_codes.push_back(static_cast<std::uint8_t>(codes_.decode(feature, code)));
  return on_device;
}

DeviceRows::~DeviceRows() {
  try {
    Device::Use use(state_->device);
    trees_.reset();
    state_.reset();
  } catch (const DeviceError&) {  // the device is gone, and its memory with it
  }
}

// Room for a sample of n rows: the next one may be a little larger.
std::size_t DeviceRows::empty_copy(std::size_t n) const {
  return std::min(n_training_, n + n / 64);
}

DeviceRows::Pairs DeviceRows::pairs_of(const Gradients& gradients, std::size_t output,
                                       const Sample* sample) {
  DeviceState& s = *state_;
  const std::size_t width = policy_.width();
  const FixedPair* pairs = gradients.device_pairs;
  if (pairs == nullptr) {
    if (s.pairs_version != gradients.version) {  // trees of a forest share them
      s.replace(gradients.pairs.data(), gradients.pairs.size(), s.all_pairs);
      s.pairs_version = gradients.version;
    }
    pairs = s.all_pairs.data();
  }
  const auto first = static_cast<std::ptrdiff_t>(output), n = static_cast<std::ptrdiff_t>(width);
  const auto some = [=](const std::vector<std::int64_t>& sums) {
    return std::vector<std::int64_t>(sums.begin() + first, sums.begin() + first + n);
  };
  Pairs all{pairs + output * gradients.output_stride(),
            gradients.row_stride(),
            gradients.output_stride(),
            gradients.g_exponent,
            gradients.h_exponent,
            some(gradients.sum_abs_g),
            some(gradients.sum_h)};
  if (sample == nullptr) return all;
  float largest = sample->largest_weight;
  if (!sample->on_device && sample->weighted && sample->size > 0) {
    const float* weights = sample->weights.data();
    largest = *std::max_element(weights, weights + sample->size);
    s.replace(weights, sample->size, s.weights);
  }
  const int drop = bits_of_factor(std::max(1.0f, largest));
  const double factor = std::ldexp(1.0, -drop);
  make_room(s.sample_pairs, empty_copy(sample->size) * width);
  const PairRows rows{all.pairs,
                      all.row_stride,
                      all.output_stride,
                      {s.positions.data(), s.table_rows.data()},
                      static_cast<std::uint32_t>(sample->size),
                      0,
                      static_cast<std::uint32_t>(width),
                      0,
                      0};
  s.queue.launch(s.device.kernel("gather_pairs"), {std::min<std::size_t>(1024, blocks_for(rows.n))},
                 threads, 0, rows, sample->weighted ? s.weights.data() : nullptr, factor,
                 s.sample_pairs.data(), s.sample_sums.start(2 * width, s.queue));
  const std::vector<std::int64_t> sums = s.sample_sums.wait(s.queue);
  Pairs sample_pairs{s.sample_pairs.data(),       width, 1, gradients.g_exponent - drop,
                     gradients.h_exponent - drop, {},    {}};
  for (std::size_t k = 0; k < width; ++k) {
    sample_pairs.sum_abs_g.push_back(sums[2 * k]);
    sample_pairs.sum_h.push_back(sums[2 * k + 1]);
  }
  return sample_pairs;
}

TreeScale DeviceRows::start_tree(const Gradients& gradients, std::size_t output,
                                 const TreeRequest& request, Team&) {
  DeviceState& s = *state_;
  Device::Use use(s.device);
  sample_ = request.sample;
  request_ = request;
  has_leaves_ = false;
  tree_rows_ = training_rows();
  if (sample_ != nullptr) {
    tree_rows_ = {sample_->size, sample_->positions.data(), tree_rows_.table_rows};
    if (!sample_->on_device) s.replace(sample_->positions.data(), sample_->size, s.positions);
  }
  pairs_ = pairs_of(gradients, output, sample_);
  take_targets(gradients, output);
  scaling_ = scaling_of(pairs_.sum_abs_g, pairs_.sum_h, tree_rows_.n, params_.sum_bits,
                        !params_.sums_are_wide());
  const auto bits = counter_hash(request.seed, Purpose::gradient_rounding, request.number, output);
  quantise(scaling_, static_cast<std::uint32_t>(bits));
  sizes_.start_tree();
  const bool counted = sizes_.counting() != Counting::none;
  slots_.use_channels(policy_.width() + (counted ? 1 : 0));
  double weight = 0;
  for (const std::int64_t h : pairs_.sum_h)
    weight += std::ldexp(static_cast<double>(h), -pairs_.h_exponent) /
              static_cast<double>(policy_.width());
  return {.g_unit = std::ldexp(1.0, scaling_.g.shift() - pairs_.g_exponent),
          .h_unit = std::ldexp(1.0, scaling_.h.shift() - pairs_.h_exponent),
          .weight = weight,
          .n_rows = tree_rows_.n,
          .counted = counted,
          .least_h = 1};
}

void DeviceRows::quantise(const TreeScaling& scaling, std::uint32_t seed) {
  DeviceState& s = *state_;
  const std::size_t n = tree_rows_.n;
  for (auto& elements : s.elements) make_room(elements, empty_copy(n));
  const PairRows rows{pairs_.pairs,
                      pairs_.row_stride,
                      pairs_.output_stride,
                      {sample_ == nullptr ? nullptr : s.positions.data(), s.table_rows.data()},
                      static_cast<std::uint32_t>(n),
                      seed,
                      static_cast<std::uint32_t>(policy_.width()),
                      scaling.g.shift(),
                      scaling.h.shift()};
  const GivenTotals totals = s.root_sums.start(policy_.width(), s.queue);
  if (scaling.narrow) {
    const std::size_t blocks = 8 * static_cast<std::size_t>(s.device.multiprocessors());
    s.queue.launch(s.device.kernel("quantise_narrow"), {std::min(blocks, blocks_for(n))}, threads,
                   0, rows, s.elements[0].data(), totals);
  } else {
    make_room(s.wide, codes_.n_rows * policy_.width());
    s.queue.launch(s.device.kernel("quantise_wide"), {blocks_for(n)}, threads, 0, rows, scaling.g,
                   scaling.h, s.elements[0].data(), s.wide.data());
    const RowValues values{s.wide.data(), rows.outputs, rows.outputs};
    s.queue.launch(s.device.kernel("sum_values"), {std::min<std::size_t>(1024, blocks_for(n))},
                   threads, 0, s.elements[0].data(), rows.n, values, totals);
  }
}

}  // namespace arboost::cuda
