// Leaves of a finished tree: the leaf of each row, sums of its nodes, and the update of scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/collective.h"
#include "base/parallel.h"
#include "grow/policy/tree_shape.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/workspace.h"
#include "grow/trees/grown_trees.h"

namespace arboost {

// Calls use(node) for the nodes whose elements are the rows of a leaf: the leaf itself or, if a
// speculative expansion of the leaf was discarded, its last descendants.
template <class Use>
void each_holder(const GrowNode* leaf, Use use) {
  std::vector<const GrowNode*> below{leaf};
  while (!below.empty()) {
    const GrowNode* node = below.back();
    below.pop_back();
    if (node->expanded)  // except nodes whose subtree one thread has grown
      below.insert(below.end(), {node->left, node->right});
    else
      use(*node);
  }
}

// Sums of inner nodes [node][per_node] from those of leaves: children come after their parents, so
// in reverse order every node's sums are complete when reached.
template <class Sums>
void add_inner_sums(std::span<const std::int32_t> left_of, std::size_t per_node, Sums& sums) {
  for (std::size_t id = left_of.size(); id-- > 0;) {
    if (left_of[id] == 0) continue;
    const auto left = static_cast<std::size_t>(left_of[id]);
    for (std::size_t j = 0; j < per_node; ++j)
      sums[id * per_node + j] = sums[left * per_node + j] + sums[(left + 1) * per_node + j];
  }
}

// Adds the values of the forest's last tree, grown on `rows`, to the scores of all training rows.
// `leaf_of_row`: leaves of these rows, by table row; others are walked to theirs.
void add_leaf_values(const GrownTrees& forest, const Codes& table, const TreeRows& rows,
                     std::size_t n_training, const std::uint32_t* leaf_of_row, ScoreRows scores,
                     Team& team);

class RowLeaves {
 public:
  // `table` is the table that splits of grown trees refer to.
  RowLeaves(const Codes& table, RowPartition& rows, std::size_t width, Workspace& workspace,
            Collective& workers)
      : table_(table), rows_(rows), width_(width), space_(workspace), workers_(workers) {}

  const std::uint32_t* leaves() const { return space_.leaf_of_row.data(); }  // by table row

  // Notes the leaf of each row; returns the sums over the tree's rows or, for a sample that leaf
  // values do not come from, over all training rows. The tree is the last one of the forest.
  LeafSums finish(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                  std::size_t output, bool from_all_rows, Team& team);
  // Notes the leaves of all training rows, by a walk; returns their sums.
  LeafSums walk_all(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                    std::size_t output, Team& team);
  // Sums of other gradients over the rows of the last tree.
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team);
  // Adds the values of the last tree to the scores of all training rows.
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const {
    add_leaf_values(forest, table_, rows_.rows(), rows_.n_training(), leaves(), scores, team);
  }

 private:
  class NodeSums;
  void assign(const TreeShape& shape, Team& team);
  std::vector<std::int64_t> node_sums(const TreeShape& shape, const TreePairs& pairs, Team& team);
  std::vector<std::int64_t> walked_sums(const TreeShape& shape, const TreePairs& pairs,
                                        const GrownTrees& forest, Team& team);

  const Codes& table_;
  RowPartition& rows_;
  std::size_t width_;
  Workspace& space_;
  Collective& workers_;
};

}  // namespace arboost
