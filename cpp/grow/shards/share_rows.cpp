// Slices of arrays of all rows, and leaves of all rows from those of the workers.
#include "grow/shards/share_rows.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "bin/codes/take.h"
#include "grow/shards/shared_walk.h"

namespace arboost {
namespace {

Codes without_rows(const Codes& codes) {
  Team alone(1);
  return take_rows(codes, {0, nullptr, nullptr}, alone);
}

}  // namespace

ShareRows::ShareRows(const SharedCodes& codes, const Codes& grown_on,
                     std::span<const RowId> table_rows, TreePolicy& policy, Workspace& workspace)
    : codes_(codes),
      space_(workspace),
      table_rows_(table_rows.begin(), table_rows.end()),
      n_training_(table_rows.empty() ? codes.n_rows : table_rows.size()),
      own_(table_rows.empty() ? codes.own_of_all() : codes.own_of(table_rows)) {
  const std::vector<RowId> local = codes.local(
      table_rows_.empty() ? std::span<const RowId>{} : table_rows.subspan(own_.begin, own_.size()));
  // No rows in a list would be all rows.
  const bool has_none = !table_rows_.empty() && local.empty();
  if (has_none) none_ = without_rows(grown_on);
  rows_ = std::make_unique<WorkerRows>(has_none ? none_ : codes.local_codes,
                                       has_none ? none_ : grown_on, local, policy, workspace,
                                       codes.workers, codes.n_votes);
}

TreeScale ShareRows::start_tree(const Gradients& gradients, std::size_t output,
                                const TreeRequest& request, Team& team) {
  has_leaves_ = false;
  tree_rows_ = training_rows();
  TreeRequest local_request = request;
  const bool is_own = &gradients == gradients_.get();
  if (request.sample != nullptr && !is_own) {
    tree_rows_ = {request.sample->size, request.sample->positions.data(), tree_rows_.table_rows};
    take_sample(*request.sample);
    local_request.sample = &sample_;
  }
  return rows_->start_tree(of_own(gradients), output, local_request, team);
}

// The gradients of this worker's rows have the scale of all, and sums of their own.
const Gradients& ShareRows::of_own(const Gradients& gradients) {
  if (&gradients == gradients_.get()) return gradients;
  Gradients& local_gradients = own_gradients(gradients.outputs, gradients.by_row);
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
              .pairs[(own_.begin + i) * gradients.row_stride() + k * gradients.output_stride()];
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
  const std::uint32_t* first = std::lower_bound(positions, positions + sample.size, own_.begin);
  const std::uint32_t* last = std::lower_bound(first, positions + sample.size, own_.end);
  const auto offset = static_cast<std::size_t>(first - positions);
  sample_.size = static_cast<std::size_t>(last - first);
  sample_.weighted = sample.weighted;
  make_room(sample_.positions, sample_.size + 1);  // a sample without rows is not that of all rows
  make_room(sample_.weights, sample_.size + 1);
  for (std::size_t i = 0; i < sample_.size; ++i) {
    sample_.positions[i] = first[i] - static_cast<std::uint32_t>(own_.begin);
    if (sample.weighted) sample_.weights[i] = sample.weights[offset + i];
  }
}

LeafSums ShareRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                              const Gradients& gradients, std::size_t output,
                              const TreeRequest& request, Team& team) {
  forest_ = &forest;
  if (request.leaves_from_all_rows) tree_rows_ = training_rows();
  return rows_->leaf_sums(shape, forest, of_own(gradients), output, request, team);
}

LeafSums ShareRows::sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                            Team& team) {
  return rows_->sums_of(shape, of_own(gradients), output, team);
}

// Leaves of this worker's training rows in the last tree.
std::vector<std::uint32_t> ShareRows::leaves_of_own(const GrownTrees& forest, Team& team) const {
  std::vector<std::uint32_t> local_leaves(own_.size());
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
      gather_leaves(leaves_of_own(forest, team), forest.n_nodes(last), codes_.workers);
  forest.add_leaves(last, all, 1.0, scores, team);
}

const std::uint32_t* ShareRows::leaves() const {
  if (has_leaves_) return leaves_.data();
  Team alone(1);
  const std::vector<std::uint32_t> all = gather_leaves(
      leaves_of_own(*forest_, alone), forest_->n_nodes(forest_->n_trees() - 1), codes_.workers);
  make_room(leaves_, codes_.n_rows);
  const TreeRows training = training_rows();
  for (std::size_t i = 0; i < all.size(); ++i) leaves_[training.row(i)] = all[i];
  has_leaves_ = true;
  return leaves_.data();
}

LossRows ShareRows::own_rows(const LossRows& rows) const {
  LossRows local_rows = rows;
  local_rows.y += own_.begin;
  if (local_rows.weight != nullptr) local_rows.weight += own_.begin;
  if (local_rows.scores != nullptr) local_rows.scores += own_.begin * rows.outputs;
  local_rows.n_rows = own_.size();
  return local_rows;
}

void ShareRows::start_scores(std::span<const double> of_row, double* scores) {
  for (std::size_t i = own_.begin; i < own_.end; ++i)
    std::copy(of_row.begin(), of_row.end(), scores + i * of_row.size());
  has_own_scores_ = true;
}

Gradients& ShareRows::own_gradients(std::size_t outputs, bool by_row) {
  if (!gradients_ || gradients_->outputs != outputs || gradients_->by_row != by_row)
    gradients_ = std::make_unique<Gradients>(own_.size(), outputs, by_row);
  return *gradients_;
}

void ShareRows::draw_own(double rate, std::uint32_t bits, Sample& out, Team& team) const {
  sample_uniform(own_.begin, own_.end, rate, bits, out, team);
  // At least one row of all is drawn. Where many rows are expected, workers need not be asked.
  constexpr double many = 4096;
  if (rate * static_cast<double>(n_training_) > many) return;
  std::int64_t n[] = {static_cast<std::int64_t>(out.size)};
  workers().sum(Collective::Numbers(n));
  if (n[0] > 0) return;
  const std::size_t first = row_of_empty(n_training_, bits);
  if (first < own_.begin || first >= own_.end) return;
  out.size = 1;
  out.positions[0] = static_cast<std::uint32_t>(first - own_.begin);
}

void ShareRows::add_own(const GrownTrees& forest, ScoreRows scores, Team& team) {
  rows_->add_values(forest, {scores.scores + own_.begin * scores.stride, scores.stride}, team);
  has_own_scores_ = true;
}

void ShareRows::add_own(const GrownTrees& forest, std::size_t tree, ScoreRows scores, Team& team) {
  const TreeRows training = rows_->training_rows();
  scores.scores += own_.begin * scores.stride;
  if (training.n > 0) forest.add(tree, codes_.local_codes, training, 1.0, scores, team);
  has_own_scores_ = true;
}

void ShareRows::fetch_scores(std::size_t outputs, double* scores) {
  if (!has_own_scores_) return;
  gather_scores(own_.begin, own_.end, outputs, scores, workers());
  has_own_scores_ = false;
}

}  // namespace arboost
