// CART on a device: targets of the rows, purity of nodes, trees that grow as a whole.
#include "grow/device/device_rows.h"
#include "grow/device/device_state.h"
#include "grow/rows/row_leaves.h"  // add_inner_sums

namespace arboost::cuda {

void DeviceRows::take_targets(const Gradients& gradients, std::size_t output) {
  DeviceState& s = *state_;
  const std::size_t first = output * gradients.output_stride();
  const FixedPair* on_device = gradients.device_pairs;
  targets_ = {(on_device == nullptr ? s.all_pairs.data() : on_device) + first,
              gradients.row_stride(), gradients.output_stride(), s.position_of_row.data(),
              static_cast<std::uint32_t>(policy_.width())};
  if (on_device != nullptr) return;
  check_targets(params_.criterion,
                {gradients.pairs.data() + first, gradients.row_stride(), gradients.output_stride(),
                 gradients.g_exponent, gradients.h_exponent, pairs_.sum_abs_g, pairs_.sum_h},
                gradients.n_rows);
}

std::vector<GrowNode*> DeviceRows::impure(std::vector<GrowNode*> nodes) {
  if (!params_.allow_zero_gain || nodes.empty()) return nodes;
  DeviceState& s = *state_;
  std::vector<RowRange> ranges;
  for (const GrowNode* node : nodes)
    ranges.push_back({static_cast<std::uint32_t>(node->begin),
                      static_cast<std::uint32_t>(node->end),
                      static_cast<std::uint32_t>(node->buffer)});
  s.send(ranges, s.ranges);
  make_room(s.pure, nodes.size());
  s.queue.launch(s.device.kernel("pure_nodes"), {nodes.size()}, threads, 0, s.ranges.data(),
                 s.elements[0].data(), s.elements[1].data(), targets_, s.pure.data());
  const auto pure = s.receive<std::uint32_t>(s.pure.address(), nodes.size());
  std::vector<GrowNode*> kept;
  for (std::size_t j = 0; j < nodes.size(); ++j)
    if (pure[j] == 0) kept.push_back(nodes[j]);
  return kept;
}

// Sets the sums of the root, which were added up when its rows were quantised.
void DeviceRows::take_root_sums(GrowNode& root) {
  root.sums = state_->root_sums.wait(state_->queue);
  root.sums.resize(policy_.channels(), static_cast<std::int64_t>(tree_rows_.n));  // any count
}

RowValues DeviceRows::row_values() const {
  return {scaling_.narrow ? nullptr : state_->wide.data(),
          static_cast<std::uint32_t>(policy_.width()),
          static_cast<std::uint32_t>(slots_.channels())};
}

void DeviceRows::grow(TreePolicy& policy, Team& team) {
  whole_ = nullptr;
  if (!trees_ || request_.turn % codes_.n_features != 0) return BatchRows::grow(policy, team);
  Device::Use use(state_->device);
  GrowNode& root = policy.open_root(tree_rows_.n, true);
  take_root_sums(root);
  root.subtree_of = 0;
  root.subtree = 0;
  trees_->grow(policy, request_, root, row_values(), targets_, team);
  whole_ = &trees_->grown();
}

LeafSums DeviceRows::whole_sums(const TreeShape& shape) {
  DeviceState& s = *state_;
  const auto n = static_cast<std::uint32_t>(tree_rows_.n);
  const RowNumbers numbers{sample_ == nullptr ? nullptr : s.positions.data(), s.table_rows.data()};
  const bool renumbered = numbers.positions != nullptr || numbers.table_rows != nullptr;
  if (renumbered) {
    make_room(s.number_of_row, codes_.n_rows);
    s.queue.launch(s.device.kernel("number_rows"), {blocks_for(n)}, threads, 0, numbers, n,
                   s.number_of_row.data());
  }
  const auto width = static_cast<std::uint32_t>(policy_.width());
  const PairRows rows{
      pairs_.pairs, pairs_.row_stride, pairs_.output_stride, numbers, n, 0, width, 0, 0};
  std::vector<std::int64_t> sums =
      trees_->leaf_sums(shape, rows, renumbered ? s.number_of_row.data() : nullptr);
  add_inner_sums(shape.left(), 2 * policy_.width(), sums);
  return {std::move(sums), pairs_.g_exponent, pairs_.h_exponent};
}

std::span<const SubtreeNodes* const> DeviceRows::subtrees() const {
  return {&whole_, whole_ == nullptr ? 0u : 1u};
}

}  // namespace arboost::cuda
