// Three launches a byte of the leaf numbers, two for the sums; one wait.
#include "grow/device/device_means.h"

#include <bit>  // bit_width

#include "grow/device/device_state.h"

namespace arboost::cuda {

// The rows by leaf, and those of a leaf in their order.
const Element* DeviceMeans::sort(const std::uint32_t* leaf_of_row, std::size_t n_leaves) {
  DeviceState& s = state_;
  make_room(counts_, n_digits * blocks_for(n_training_, tile_rows));
  make_room(totals_, n_digits);
  LeafSort pass{.from = nullptr,
                .leaf_of_row = leaf_of_row,
                .number_of_row = s.is_sample() ? s.numbers() : nullptr,
                .table_rows = s.table_rows.data(),
                .n = static_cast<std::uint32_t>(n_training_),
                .shift = 32,
                .to = s.elements[0].data(),
                .counts = counts_.data(),
                .totals = totals_.data()};
  const auto end = static_cast<std::uint32_t>(32 + std::bit_width(n_leaves - 1));
  for (; pass.from == nullptr || pass.shift < end; pass.shift += 8) {
    const std::size_t n_tiles = blocks_for(pass.n, tile_rows);
    s.queue.launch(s.device.kernel("count_leaf_digits"), {n_tiles}, threads, 0, pass);
    s.queue.launch(s.device.kernel("add_leaf_digits"), {n_digits}, threads, 0, pass,
                   static_cast<std::uint32_t>(n_tiles));
    s.queue.launch(s.device.kernel("move_rows"), {n_tiles}, threads, 0, pass);
    pass.from = pass.to;
    pass.to = s.elements[pass.from == s.elements[0].data() ? 1 : 0].data();
    pass.n = s.n_rows;
  }
  return pass.from;
}

std::vector<double> DeviceMeans::sums(const std::uint32_t* leaf_of_row, std::size_t n_leaves,
                                      const LeafTarget& target, const float* counts) {
  DeviceState& s = state_;
  if (version_ != target.version) {  // trees of a forest share them
    s.replace(target.y.data(), target.y.size(), y_);
    if (!target.weight.empty()) s.replace(target.weight.data(), target.weight.size(), weight_);
    version_ = target.version;
  }
  const Element* sorted = sort(leaf_of_row, n_leaves);
  make_spare_room(ranges_, n_leaves);
  make_spare_room(sums_, n_leaves * (1 + width_));
  s.queue.fill_zero(ranges_.address(), n_leaves * sizeof(LeafRange));
  s.queue.launch(s.device.kernel("find_ranges"), {blocks_for(s.n_rows)}, threads, 0, sorted,
                 s.n_rows, ranges_.data());
  const TargetColumns columns{.y = y_.data(),
                              .weight = target.weight.empty() ? nullptr : weight_.data(),
                              .counts = counts,
                              .number_of_row = s.numbers(),
                              .table_rows = s.table_rows.data(),
                              .width = static_cast<std::uint32_t>(width_)};
  s.queue.launch(s.device.kernel("sum_targets"), {blocks_for(n_leaves, threads / 32)}, threads, 0,
                 sorted, ranges_.data(), static_cast<std::uint32_t>(n_leaves), columns,
                 sums_.data());
  return s.receive<double>(sums_.address(), n_leaves * (1 + width_));
}

}  // namespace arboost::cuda
