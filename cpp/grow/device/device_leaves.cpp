// End of a tree: sums of its leaves, and scores of the rows.
#include "grow/device/device_rows.h"
#include "grow/device/device_state.h"
#include "grow/device/table/walked_tree.h"
#include "grow/rows/row_leaves.h"

namespace arboost::cuda {

LeafSums DeviceRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                               const Gradients& gradients, std::size_t output,
                               const TreeRequest& request, Team&) {
  Device::Use use(state_->device);
  walked_forest_ = &forest;
  has_leaves_ = has_walked_ = has_sent_ = false;
  if (sample_ != nullptr && request.leaves_from_all_rows) {
    sample_ = nullptr;
    tree_rows_ = training_rows();
    pairs_ = pairs_of(gradients, output, nullptr);
    return summed(shape, pairs_, RowsOf::walk);
  }
  return whole_ != nullptr ? whole_sums(shape) : summed(shape, pairs_, RowsOf::walk);
}

// Sends the last tree of the forest, for walks. Whole trees that nothing walks stay here.
void DeviceRows::send_tree() const {
  if (has_sent_) return;
  has_sent_ = true;
  DeviceState& s = *state_;
  const GrownTrees& forest = *walked_forest_;
  const WalkedTree walked = walked_tree(forest, forest.n_trees() - 1, table_);
  s.send(walked.tests, s.tests);
  s.send(walked.nodes, s.tree);
}

// Notes the leaves of all training rows in the last tree.
void DeviceRows::walk() const {
  if (has_walked_) return;
  send_tree();
  DeviceState& s = *state_;
  const RowNumbers rows{nullptr, s.table_rows.data()};
  s.queue.launch(s.device.kernel("walk"), {blocks_for(n_training_)}, threads, 0, s.walked->codes(),
                 s.tree.data(), s.tests.data(), rows, static_cast<std::uint32_t>(n_training_),
                 s.leaf_of_row.data());
  has_walked_ = true;
}

LeafSums DeviceRows::sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                             Team&) {
  Device::Use use(state_->device);
  walk();
  return summed(shape, pairs_of(gradients, output, sample_), RowsOf::known_leaves);
}

// Sums over the rows of the tree.
LeafSums DeviceRows::summed(const TreeShape& shape, const Pairs& pairs, RowsOf source) {
  DeviceState& s = *state_;
  const std::size_t width = policy_.width(), size = shape.size() * width * 2, n = tree_rows_.n;
  const RowNumbers numbers{sample_ == nullptr ? nullptr : s.positions.data(), s.table_rows.data()};
  const PairRows rows{pairs.pairs,
                      pairs.row_stride,
                      pairs.output_stride,
                      numbers,
                      static_cast<std::uint32_t>(n),
                      0,
                      static_cast<std::uint32_t>(width),
                      0,
                      0};
  const GivenTotals totals = s.leaf_sums.start(size, s.queue);
  if (source == RowsOf::walk) {
    send_tree();
    constexpr std::size_t most_bytes = std::size_t{32} << 10;
    const std::size_t bytes = size * sizeof(std::int64_t);
    const bool fits = bytes <= most_bytes;
    const std::size_t blocks = 8 * static_cast<std::size_t>(s.device.multiprocessors());
    s.queue.launch(s.device.kernel("walk_sums"), {std::min(blocks, blocks_for(n))}, threads,
                   fits ? bytes : 0, s.walked->codes(), s.tree.data(), s.tests.data(), rows,
                   s.leaf_of_row.data(), fits, totals);
    has_walked_ = sample_ == nullptr;
  } else {
    s.queue.launch(s.device.kernel("sums_by_leaf"), {std::min<std::size_t>(1024, blocks_for(n))},
                   threads, 0, rows, s.leaf_of_row.data(), totals);
  }
  std::vector<std::int64_t> sums = s.leaf_sums.wait(s.queue);
  s.n_sent = 0;  // all copies came before
  add_inner_sums(shape.left(), 2 * width, sums);
  return {std::move(sums), pairs.g_exponent, pairs.h_exponent};
}

const std::uint32_t* DeviceRows::leaves() const {
  make_room(space_.leaf_of_row, codes_.n_rows);
  if (!has_leaves_) {
    Device::Use use(state_->device);
    walk();
    state_->queue.download(state_->leaf_of_row, codes_.n_rows, space_.leaf_of_row.data());
    state_->queue.wait();
    has_leaves_ = true;
  }
  return space_.leaf_of_row.data();
}

void DeviceRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  add_leaf_values(forest, table_, tree_rows_, n_training_, leaves(), scores, team);
}

DeviceRounds& DeviceRows::rounds() {
  if (!state_->rounds)
    state_->rounds = std::make_unique<DeviceRounds>(state_->device, state_->queue);
  return *state_->rounds;
}

void DeviceRows::start_scores(std::span<const double> scores_of_row) {
  Device::Use use(state_->device);
  rounds().start(scores_of_row, n_training_);
}

void DeviceRows::open_rounds(const LossRows& rows, std::optional<Device::Use>& use) {
  use.emplace(state_->device);
  rounds().open(rows);
}

void DeviceRows::fetch_scores(double* scores) {
  Device::Use use(state_->device);
  rounds().fetch(scores);
}

bool DeviceRows::has_scores() const {
  return state_->rounds && state_->rounds->is_current();
}

void DeviceRows::add_last(const GrownTrees& forest, std::size_t output) {
  Device::Use use(state_->device);
  add_values(forest, output);
}

void DeviceRows::add_values(const GrownTrees& forest, std::size_t output) {
  DeviceState& s = *state_;
  send_tree();
  const std::size_t last = forest.n_trees() - 1, n = forest.n_nodes(last) * forest.width;
  s.send(std::vector<double>(forest.values(last), forest.values(last) + n), s.values);
  const RowNumbers rows{nullptr, s.table_rows.data()};
  walk();
  s.queue.launch(s.device.kernel("add_values"), {blocks_for(n_training_)}, threads, 0,
                 s.leaf_of_row.data(), rows, static_cast<std::uint32_t>(n_training_),
                 s.values.data(), static_cast<std::uint32_t>(forest.width),
                 static_cast<std::uint32_t>(s.rounds->outputs()), s.rounds->scores(output));
}

}  // namespace arboost::cuda
