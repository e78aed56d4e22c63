// A launch for each sum, walk or addition.
#include "grow/device/device_leaves.h"

#include <algorithm>

#include "grow/device/device_state.h"
#include "grow/device/table/walked_tree.h"

namespace arboost::cuda {

DeviceLeaves::DeviceLeaves(DeviceState& state, const Codes& table, std::size_t n_training)
    : state_(state), table_(table), n_training_(n_training), leaf_of_row_(table.n_rows) {}

void DeviceLeaves::start(const GrownTrees& forest) {
  forest_ = &forest;
  has_sent_ = has_walked_ = has_fetched_ = false;
}

// Whole trees that nothing walks stay here.
void DeviceLeaves::send_tree() {
  if (has_sent_) return;
  const WalkedTree walked = walked_tree(*forest_, forest_->n_trees() - 1, table_);
  state_.send(walked.tests, tests_);
  state_.send(walked.nodes, nodes_);
  has_sent_ = true;
}

void DeviceLeaves::walk() {
  if (has_walked_) return;
  send_tree();
  DeviceState& s = state_;
  s.queue.launch(s.device.kernel("walk"), {blocks_for(n_training_)}, threads, 0, s.walked->codes(),
                 nodes_.data(), tests_.data(), s.all_rows(),
                 static_cast<std::uint32_t>(n_training_), leaf_of_row_.data());
  has_walked_ = true;
}

std::size_t DeviceLeaves::n_sums(const PairRows& pairs) const {
  return forest_->n_nodes(forest_->n_trees() - 1) * pairs.outputs * 2;
}

std::vector<std::int64_t> DeviceLeaves::walk_sums(const PairRows& pairs) {
  DeviceState& s = state_;
  send_tree();
  const std::size_t bytes = shared_bytes(pairs);
  s.queue.launch(s.device.kernel("walk_sums"), {s.few_blocks(pairs.n)}, threads, bytes,
                 s.walked->codes(), nodes_.data(), tests_.data(), pairs, leaf_of_row_.data(),
                 bytes > 0, sums_.start(n_sums(pairs), s.queue));
  has_walked_ = pairs.rows.positions == nullptr;
  return take_sums();
}

std::vector<std::int64_t> DeviceLeaves::sums(const PairRows& pairs) {
  walk();
  DeviceState& s = state_;
  const std::size_t bytes = shared_bytes(pairs);
  s.queue.launch(s.device.kernel("sums_by_leaf"), {s.few_blocks(pairs.n)}, threads, bytes, pairs,
                 leaf_of_row_.data(), bytes > 0, sums_.start(n_sums(pairs), s.queue));
  return take_sums();
}

// Of a block's sums; 0: they do not fit.
std::size_t DeviceLeaves::shared_bytes(const PairRows& pairs) const {
  constexpr std::size_t most_bytes = std::size_t{32} << 10;
  const std::size_t bytes = n_sums(pairs) * sizeof(std::int64_t);
  return bytes <= most_bytes ? bytes : 0;
}

std::vector<std::int64_t> DeviceLeaves::take_sums() {
  std::vector<std::int64_t> sums = sums_.wait(state_.queue);
  state_.n_sent = 0;  // all copies came before
  return sums;
}

void DeviceLeaves::add_values(const GrownTrees& forest, std::size_t outputs, double* scores) {
  DeviceState& s = state_;
  const std::size_t last = forest.n_trees() - 1, n = forest.n_nodes(last) * forest.width;
  walk();
  s.send(std::vector<double>(forest.values(last), forest.values(last) + n), values_);
  s.queue.launch(s.device.kernel("add_values"), {blocks_for(n_training_)}, threads, 0,
                 leaf_of_row_.data(), s.all_rows(), static_cast<std::uint32_t>(n_training_),
                 values_.data(), static_cast<std::uint32_t>(forest.width),
                 static_cast<std::uint32_t>(outputs), scores);
}

void DeviceLeaves::fetch(std::uint32_t* leaf_of_row) {
  if (has_fetched_) return;
  Device::Use use(state_.device);
  walk();
  state_.queue.download(leaf_of_row_, table_.n_rows, leaf_of_row);
  state_.queue.wait();
  has_fetched_ = true;
}

}  // namespace arboost::cuda
