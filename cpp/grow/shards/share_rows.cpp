// Slices of arrays of all rows, and leaves of all rows from those of the workers.
#include "grow/shards/share_rows.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bin/codes/take.h"
#include "grow/shards/shared_walk.h"
#include "grow/shards/worker_round.h"

namespace arboost {
namespace {

Codes without_rows(const Codes& codes) {
  Team alone(1);
  return take_rows(codes, {0, nullptr, nullptr}, alone);
}

}  // namespace

ShareRows::ShareRows(const SharedCodes& codes, const Codes& grown_on,
                     std::span<const RowId> table_rows, MakeRows make_rows)
    : codes_(codes),
      table_rows_(table_rows.begin(), table_rows.end()),
      n_training_(table_rows.empty() ? codes.n_rows : table_rows.size()),
      range_(table_rows.empty() ? codes.own_of_all() : codes.own_of(table_rows)) {
  const std::vector<RowId> local =
      codes.local(table_rows_.empty() ? std::span<const RowId>{}
                                      : table_rows.subspan(range_.begin, range_.size()));
  // No rows in a list would be all rows.
  const bool has_none = !table_rows_.empty() && local.empty();
  if (has_none) none_ = without_rows(grown_on);
  rows_ = make_rows(has_none ? none_ : codes.local_codes, has_none ? none_ : grown_on, local);
}

TreeScale ShareRows::start_tree(const Gradients& gradients, std::size_t output,
                                const TreeRequest& request, Team& team) {
  has_leaves_ = false;
  tree_rows_ = training_rows();
  TreeRequest local_request = request;
  if (request.sample != nullptr && gradients.n_rows == n_training_) {
    tree_rows_ = {request.sample->size, request.sample->positions.data(), tree_rows_.table_rows};
    take_sample(*request.sample);
    local_request.sample = &sample_;
  }
  return rows_->start_tree(local_gradients(gradients), output, local_request, team);
}

// The gradients of this worker's rows have the scale of all, and sums of their own.
const Gradients& ShareRows::local_gradients(const Gradients& gradients) {
  if (are_local(gradients)) return gradients;
  if (!gradients_) gradients_.emplace(range_.size(), gradients.outputs, gradients.by_row);
  Gradients& local_gradients = *gradients_;
  if (local_gradients.version == gradients.version) return local_gradients;
  local_gradients.version = gradients.version;
  local_gradients.g_exponent = gradients.g_exponent;
  local_gradients.h_exponent = gradients.h_exponent;
  local_gradients.sum_abs_g.assign(gradients.outputs, 0);
  local_gradients.sum_h.assign(gradients.outputs, 0);
  for (std::size_t k = 0; k < gradients.outputs; ++k)
    for (std::size_t i = 0; i < local_gradients.n_rows; ++i) {
      const FixedPair pair =
          gradients
              .pairs[(range_.begin + i) * gradients.row_stride() + k * gradients.output_stride()];
      local_gradients
          .pairs[i * local_gradients.row_stride() + k * local_gradients.output_stride()] = pair;
      local_gradients.sum_abs_g[k] += std::abs(pair.g);
      local_gradients.sum_h[k] += pair.h;
    }
  local_gradients.is_filled = true;
  return local_gradients;
}

void ShareRows::take_sample(const Sample& sample) {
  const std::uint32_t* positions = sample.positions.data();
  const std::uint32_t* first = std::lower_bound(positions, positions + sample.size, range_.begin);
  const std::uint32_t* last = std::lower_bound(first, positions + sample.size, range_.end);
  const auto offset = static_cast<std::size_t>(first - positions);
  sample_.size = static_cast<std::size_t>(last - first);
  sample_.weighted = sample.weighted;
  make_room(sample_.positions, sample_.size + 1);  // a sample without rows is not that of all rows
  make_room(sample_.weights, sample_.size + 1);
  for (std::size_t i = 0; i < sample_.size; ++i) {
    sample_.positions[i] = first[i] - static_cast<std::uint32_t>(range_.begin);
    if (sample.weighted) sample_.weights[i] = sample.weights[offset + i];
  }
}

LeafSums ShareRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                              const Gradients& gradients, std::size_t output,
                              const TreeRequest& request, Team& team) {
  forest_ = &forest;
  if (request.leaves_from_all_rows) tree_rows_ = training_rows();
  return rows_->leaf_sums(shape, forest, local_gradients(gradients), output, request, team);
}

LeafSums ShareRows::sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                            Team& team) {
  return rows_->sums_of(shape, local_gradients(gradients), output, team);
}

// Leaves of this worker's training rows in the last tree.
std::vector<std::uint32_t> ShareRows::leaves_of_range(const GrownTrees& forest, Team& team) const {
  std::vector<std::uint32_t> local_leaves(range_.size());
  const TreeRows training = rows_->training_rows();
  if (rows_->tree_rows().positions == nullptr) {
    for (std::size_t i = 0; i < local_leaves.size(); ++i)
      local_leaves[i] = rows_->leaves()[training.row(i)];
  } else if (!local_leaves.empty()) {
    forest.walk(forest.n_trees() - 1, codes_.local_codes, training, team,
                [&](std::size_t begin, std::size_t end, const std::uint32_t* leaves) {
                  std::copy(leaves, leaves + (end - begin), local_leaves.data() + begin);
                });
  }
  return local_leaves;
}

void ShareRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  const std::size_t last = forest.n_trees() - 1;
  const std::vector<std::uint32_t> all =
      gather_leaves(leaves_of_range(forest, team), forest.n_nodes(last), codes_.workers);
  forest.add_leaves(last, all, 1.0, scores, team);
}

const std::uint32_t* ShareRows::leaves() const {
  if (has_leaves_) return leaves_.data();
  Team alone(1);
  const std::vector<std::uint32_t> all = gather_leaves(
      leaves_of_range(*forest_, alone), forest_->n_nodes(forest_->n_trees() - 1), codes_.workers);
  make_room(leaves_, codes_.n_rows);
  const TreeRows training = training_rows();
  for (std::size_t i = 0; i < all.size(); ++i) leaves_[training.row(i)] = all[i];
  has_leaves_ = true;
  return leaves_.data();
}

std::unique_ptr<RoundRows> ShareRows::make_round(const RoundSettings& settings) {
  if (settings.needs_all_rows) return std::make_unique<GatheredRound>(*this, settings);
  return std::make_unique<WorkerRound>(*this, settings);
}

}  // namespace arboost
