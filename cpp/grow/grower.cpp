// The steps of a tree: its rows start, the policy grows it, the shape finishes it.
#include "grow/grower.h"

#include <cmath>
#include <stdexcept>

#include "grow/device/device_rows.h"
#include "grow/memory/memory_rows.h"
#include "grow/shards/share_rows.h"
#include "grow/shards/worker_rows.h"
#include "grow/stored/file_rows.h"
#include "loss/leaf.h"  // no_leaf

namespace arboost {
namespace {

TreeParams checked(const Codes& codes, const TreeParams& params) {
  if (params.candidates == Candidates::values || codes.width > 2)
    throw std::invalid_argument(
        "ranks need the candidates \"values\", and binned codes other candidates");
  return params;
}

// The same where candidates of a node are found in its histograms: counts of rows tell which bins
// occur in it.
TreeParams counting(const Codes& codes, const TreeParams& params) {
  TreeParams counted = checked(codes, params);
  if (params.candidates == Candidates::per_node) counted.count_rows = true;
  return counted;
}

bool in_memory(const Codes& codes, const TreeParams& params) {
  return !codes.stored_rows && params.device < 0;
}

// `shared`: the table of all workers, of which the rows are those of this one; null: all are here.
std::unique_ptr<NodeRows> rows_of(const Codes& table, const Codes& codes,
                                  std::span<const RowId> table_rows, TreePolicy& policy,
                                  Workspace& workspace, Collective& workers,
                                  const SharedCodes* shared = nullptr) {
  const std::size_t n_votes = shared == nullptr ? 0 : shared->n_votes;
  if (codes.stored_rows && policy.params().device >= 0)
    throw std::invalid_argument("codes in a file need no device");
  if (policy.params().device >= 0)
    return std::make_unique<cuda::DeviceRows>(table, codes, table_rows, policy, workspace, workers,
                                              n_votes);
  if (shared != nullptr)
    return std::make_unique<WorkerRows>(table, codes, table_rows, policy, workspace, workers,
                                        n_votes);
  if (codes.stored_rows)
    return std::make_unique<FileRows>(table, codes, table_rows, policy, workspace);
  table.fetch();
  return std::make_unique<MemoryRows>(table, codes, nullptr, table_rows, policy, workspace);
}

std::unique_ptr<Proposal> proposal_of(const Codes& codes, const TreeParams& params,
                                      Collective& workers) {
  if (params.candidates != Candidates::per_round) return nullptr;
  return std::make_unique<Proposal>(codes, params.sketch_eps, workers, params.device >= 0);
}

}  // namespace

Grower::Grower(const Codes& codes, std::span<const RowId> table_rows, const TreeParams& params,
               std::size_t width, Workspace& workspace)
    : proposal_(proposal_of(codes, checked(codes, params), alone_)),
      policy_(proposal_ ? proposal_->codes() : codes,
              in_memory(codes, params) ? params : counting(codes, params), width),
      rows_(rows_of(codes, proposal_ ? proposal_->codes() : codes, table_rows, policy_, workspace,
                    alone_)) {}

Grower::Grower(const SharedCodes& codes, std::span<const RowId> table_rows,
               const TreeParams& params, std::size_t width, Workspace& workspace)
    : proposal_(proposal_of(codes.local_codes, checked(codes.local_codes, params), codes.workers)),
      policy_(proposal_ ? proposal_->codes() : codes.local_codes,
              counting(codes.local_codes, params), width),
      rows_(std::make_unique<ShareRows>(
          codes, proposal_ ? proposal_->codes() : codes.local_codes, table_rows,
          [&](const Codes& table, const Codes& grown_on, std::span<const RowId> local_rows) {
            return rows_of(table, grown_on, local_rows, policy_, workspace, codes.workers, &codes);
          })) {}

Grower::Grower(const Ranks& ranks, std::span<const RowId> table_rows, const TreeParams& params,
               std::size_t width, Workspace& workspace)
    : policy_(ranks, params, width),
      rows_(std::make_unique<MemoryRows>(ranks, ranks, &ranks, table_rows, policy_, workspace)) {
  if (params.candidates != Candidates::values)
    throw std::invalid_argument("ranks need the candidates \"values\"");
}

void Grower::grow(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                  GrownTrees& forest, Team& team) {
  if (proposal_ && !proposal_->is_ready())
    throw std::logic_error("a tree was grown before any candidates were proposed for its round");
  set_leaves_.clear();
  policy_.start_tree(request, output, rows_->start_tree(gradients, output, request, team));
  rows_->grow(policy_, team);
  shape_.order(policy_, rows_->subtrees());
  const std::size_t n_trees = forest.n_trees(), n_sets = forest.sets.size();
  try {
    finish(gradients, output, request, forest, team);
  } catch (...) {
    forest.keep(n_trees, n_sets);
    throw;
  }
}

void Grower::finish(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                    GrownTrees& forest, Team& team) {
  // Proposed bins are valid for one round only: trees store the largest code of a bin instead.
  const auto stored_bin = [this](std::size_t feature, std::uint32_t bin) {
    return proposal_ ? proposal_->last_code(feature, bin) : bin;
  };
  shape_.append_splits(policy_, stored_bin, forest);
  const LeafSums sums = rows_->leaf_sums(shape_, forest, gradients, output, request, team);
  shape_.set_values(policy_, sums, request.rate, forest);
}

std::vector<double> Grower::sums(const Gradients& gradients, std::size_t output, Team& team) {
  const LeafSums sums = rows_->sums_of(shape_, gradients, output, team);
  const double unit[2] = {std::ldexp(1.0, -sums.g_exponent), std::ldexp(1.0, -sums.h_exponent)};
  std::vector<double> real(sums.sums.size());
  for (std::size_t j = 0; j < real.size(); ++j)
    real[j] = static_cast<double>(sums.sums[j]) * unit[j % 2];
  return real;
}

void Grower::set_leaves(std::vector<std::uint32_t> positions, std::vector<std::uint32_t> leaves) {
  set_positions_ = std::move(positions);
  set_leaves_ = std::move(leaves);
  set_rows_ = {set_positions_.size(), set_positions_.data(), training_rows().table_rows};
}

std::vector<std::uint32_t> Grower::leaf_of_position() const {
  if (set_leaves_.empty()) return rows_->leaf_of_position();
  std::vector<std::uint32_t> leaf(training_rows().n, no_leaf);
  for (std::size_t i = 0; i < set_leaves_.size(); ++i) leaf[set_positions_[i]] = set_leaves_[i];
  return leaf;
}

void Grower::add_last(const GrownTrees& forest, std::size_t output, std::size_t outputs,
                      double* scores, Team& team) const {
  rows_->add_values(forest, {scores + output, outputs}, team);
}

}  // namespace arboost
