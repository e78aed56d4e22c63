// Codes and gradients -> a tree, and the leaf of each row: the policy of growth, and its rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/propose.h"
#include "bin/rank.h"
#include "grow/policy/node_rows.h"
#include "grow/policy/tree_policy.h"
#include "grow/policy/tree_shape.h"
#include "grow/rounds/round_rows.h"
#include "grow/rows/workspace.h"
#include "grow/trees/grown_trees.h"
#include "grow/trees/tree_params.h"
#include "loss/apply.h"
#include "table/codes.h"
#include "table/shared_codes.h"

namespace arboost {

class Grower {
 public:
  // `width` outputs share each tree: 1, or all of them for vector leaves. `table_rows` are the
  // training rows among those of the codes, ascending; empty for all of them. Growers may share a
  // workspace if each finishes a tree, and the use of its leaves, before another starts one.
  Grower(const Codes& codes, std::span<const RowId> table_rows, const TreeParams& params,
         std::size_t width, Workspace& workspace);
  // On a table whose rows are divided among workers: each has a grower, and all grow the same
  // trees.
  Grower(const SharedCodes& codes, std::span<const RowId> table_rows, const TreeParams& params,
         std::size_t width, Workspace& workspace);
  // On ranks, with all values as split candidates. The bins of trees are ranks then.
  Grower(const Ranks& ranks, std::span<const RowId> table_rows, const TreeParams& params,
         std::size_t width, Workspace& workspace);

  // With candidates per round: proposes bins for the hessians of all training rows. Call before the
  // first tree of a round; without effect for other candidates.
  void propose(const Gradients& gradients, Team& team) {
    if (proposal_) rows_->propose(*proposal_, gradients, team);
  }

  // Appends one tree for `output` (0 for vector leaves) to the forest.
  void grow(const Gradients& gradients, std::size_t output, const TreeRequest& request,
            GrownTrees& forest, Team& team);

  // Of the last tree: the leaf of each of its rows, by number; the rows; and the sums
  // [node][output][g, h] of gradients over them.
  std::uint32_t leaf_of(std::size_t i) const {
    return set_leaves_.empty() ? rows_->leaves()[rows().row(i)] : set_leaves_[i];
  }
  // Sets both for a tree that was put together of several (grow/tree_parts.h).
  void set_leaves(std::vector<std::uint32_t> positions, std::vector<std::uint32_t> leaves);
  // The same for all training rows, by position; no_leaf outside of the tree's sample.
  std::vector<std::uint32_t> leaf_of_position() const;
  const TreeParams& params() const { return policy_.params(); }
  const TreeRows& rows() const { return set_leaves_.empty() ? rows_->tree_rows() : set_rows_; }
  TreeRows training_rows() const { return rows_->training_rows(); }
  std::vector<double> sums(const Gradients& gradients, std::size_t output, Team& team);
  // NodeRows::target_sums of the last tree.
  std::vector<double> target_sums(const LeafTarget& target) {
    return set_leaves_.empty() ? rows_->target_sums(shape_, target) : std::vector<double>{};
  }

  // Scores, gradients and samples of the training rows, wherever they are.
  std::unique_ptr<RoundRows> make_round(const RoundSettings& settings) {
    return rows_->make_round(settings);
  }
  void draw_with_replacement(const DrawChances* chances, std::size_t n_draws, const DrawSeed& seed,
                             Sample& out, Team& team) {
    rows_->draw_with_replacement(chances, n_draws, seed, out, team);
  }
  std::vector<std::uint32_t> leaves_outside() { return rows_->leaves_outside(shape_); }

  // scores[position * outputs + output ...] += the last tree's values, for all training rows.
  void add_last(const GrownTrees& forest, std::size_t output, std::size_t outputs, double* scores,
                Team& team) const;

 private:
  void finish(const Gradients& gradients, std::size_t output, const TreeRequest& request,
              GrownTrees& forest, Team& team);

  Alone alone_;
  std::unique_ptr<Proposal> proposal_;  // candidates for each round, else null
  TreePolicy policy_;
  std::unique_ptr<NodeRows> rows_;
  TreeShape shape_;                                        // of the last tree
  std::vector<std::uint32_t> set_positions_, set_leaves_;  // empty: as rows_ has them
  TreeRows set_rows_{};
};

}  // namespace arboost
