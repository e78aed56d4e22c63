// Choice of the way for each tree. A gathered tree takes two passes: the copy of its sample, and
// the walk of all rows to its leaves.
#include "grow/stored/file_rows.h"

#include "bin/codes/take.h"

namespace arboost {

FileRows::FileRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
                   TreePolicy& policy, Workspace& workspace)
    : table_(table),
      codes_(codes),
      policy_(policy),
      space_(workspace),
      streamed_(table, codes, table_rows, policy, workspace, alone_) {}

TreeScale FileRows::start_tree(const Gradients& gradients, std::size_t output,
                               const TreeRequest& request, Team& team) {
  gathered_ = nullptr;
  if (request.sample != nullptr && fits(*request.sample)) gather(*request.sample, team);
  return rows().start_tree(gradients, output, request, team);
}

// Purity is looked up by row, which gathered rows are not.
bool FileRows::fits(const Sample& sample) const {
  const std::size_t row = 2 * codes_.row_stride;  // by row and by column
  return !policy_.params().allow_zero_gain && sample.size > 0 &&
         sample.size <= policy_.params().sample_bytes / row;
}

void FileRows::gather(const Sample& sample, Team& team) {
  const TreeRows all = training_rows();
  const std::uint32_t* positions = sample.positions.data();
  gathered_ = std::make_unique<Gathered>();
  gathered_->codes = take_rows(codes_, {sample.size, positions, all.table_rows}, team);
  place_.assign(all.n, 0);
  for (std::size_t i = 0; i < sample.size; ++i) place_[positions[i]] = static_cast<RowId>(i);
  gathered_->rows = std::make_unique<MemoryRows>(gathered_->codes, gathered_->codes, nullptr,
                                                 place_, policy_, space_);
}

LeafSums FileRows::leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                             const Gradients& gradients, std::size_t output,
                             const TreeRequest& request, Team& team) {
  if (!request.leaves_from_all_rows || !gathered_)
    return rows().leaf_sums(shape, forest, gradients, output, request, team);
  gathered_ = nullptr;
  return streamed_.walk_all(shape, forest, gradients, output, team);
}

void FileRows::add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
  if (!gathered_) return streamed_.add_values(forest, scores, team);
  forest.add(forest.n_trees() - 1, table_, training_rows(), 1.0, scores, team);
}

}  // namespace arboost
