// The seam between the policy of a tree and its rows, wherever they live.
//
// The policy hands out nodes; rows divide them, find the best splits of their children, and report
// back. Implementations: threads that share the memory of one process (grow/memory); workers that
// each hold some of the rows and add up their sums (grow/shards); rows that are read from a file
// (grow/stored); and a CUDA device (grow/device). Each also makes the scores and gradients of its
// rows, which rounds of boosting need (grow/rounds/round_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/parallel.h"
#include "bin/propose.h"
#include "grow/policy/leaf_target.h"
#include "grow/policy/tree_policy.h"
#include "grow/policy/tree_shape.h"
#include "grow/trees/grown_trees.h"
#include "loss/apply.h"
#include "tree/tree_rows.h"

namespace arboost {

class RoundRows;
struct RoundSettings;

class NodeRows {
 public:
  virtual ~NodeRows() = default;

  // Starts a tree for an output of the gradients, or for all outputs with vector leaves.
  virtual TreeScale start_tree(const Gradients& gradients, std::size_t output,
                               const TreeRequest& request, Team& team) = 0;

  // Expands nodes of the policy until its tree is finished.
  virtual void grow(TreePolicy& policy, Team& team) = 0;

  // Subtrees beside the policy's nodes, by member; empty: none.
  virtual std::span<const SubtreeNodes* const> subtrees() const { return {}; }

  // Notes the leaf of each row in the finished tree, the last one of the forest, and returns the
  // sums of its nodes.
  virtual LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest,
                             const Gradients& gradients, std::size_t output,
                             const TreeRequest& request, Team& team) = 0;
  // The same sums of other gradients.
  virtual LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                           Team& team) = 0;

  // Sums [node][weight, weighted y ...] over the rows of the last tree, in their order, and 0 in
  // inner nodes; empty: the leaves are in this process, where the caller adds the rows up.
  virtual std::vector<double> target_sums(const TreeShape&, const LeafTarget&) { return {}; }

  // Adds the values of the last tree to the scores of all training rows.
  virtual void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const = 0;

  // Proposes the bins of a round for the hessians of all training rows.
  virtual void propose(Proposal& proposal, const Gradients& gradients, Team& team);

  // Scores, gradients and samples of the training rows, which must not outlive these rows: in this
  // process (grow/rounds/host_round.cpp), unless the rows are elsewhere.
  virtual std::unique_ptr<RoundRows> make_round(const RoundSettings& settings);
  // Draws the rows of a tree with replacement, where they are; without chances, with equal ones.
  virtual void draw_with_replacement(const DrawChances* chances, std::size_t n_draws,
                                     const DrawSeed& seed, Sample& out, Team& team);
  // The leaves of the training rows outside of the last tree's sample, by position, and no_leaf
  // inside. For samples that are not in this process.
  virtual std::vector<std::uint32_t> leaves_outside(const TreeShape& shape);

  // Rows of the last tree and of the training table in this process; leaves by table row.
  virtual const TreeRows& tree_rows() const = 0;
  virtual TreeRows training_rows() const = 0;
  virtual const std::uint32_t* leaves() const = 0;
  // The leaves of all training rows, by position; no_leaf outside of the tree's sample.
  std::vector<std::uint32_t> leaf_of_position() const;

 private:
  // The hessians of the training rows in this process, summed over the outputs, by table row.
  void read_hessians(const Gradients& gradients, Team& team);

  Buffer<std::uint32_t> hessians_;  // of a proposal, by row of the table
};

// Nodes that are served best in batches: one pass, one message or one launch a batch.
class NodeBatches {
 public:
  virtual ~NodeBatches() = default;
  // Expands nodes of the policy until its tree is finished.
  void grow_by_batches(TreePolicy& policy, Team& team);

 private:
  // Opens the policy's root, with its sums and best split.
  virtual void open_root(TreePolicy& policy, Team& team) = 0;
  // Most nodes of a batch; at least 1.
  virtual std::size_t batch_size() const = 0;
  // Makes the children of all nodes of a batch, and finds their best splits.
  virtual void expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) = 0;
  // The node will not be expanded.
  virtual void forget(GrowNode& node) = 0;
};

}  // namespace arboost
