// Rows in the memory of a CUDA device, behind the interface of a tree's policy.
//
// A tree grows by batches of nodes (DeviceBatches) or, for CART, level by level as a whole
// (DeviceCart), from the quantised pairs of its rows; a round of boosting has scores, gradients and
// samples there, too (DeviceRound). The tree is the same as in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bin/propose.h"
#include "cuda/device.h"
#include "grow/device/device_round.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/tree_scaling.h"
#include "grow/rows/workspace.h"

namespace arboost::cuda {

// Number of growers of trees on n_rows rows of a table that fit into the free memory of a device;
// at least one, which may not.
std::size_t growers_that_fit(const Codes& codes, std::size_t n_rows, std::size_t width, int device);

class DeviceRows final : public NodeRows {
 public:
  // `codes` are grown on, made here by `propose` where they are not the `table` itself, which the
  // splits of grown trees refer to. `n_votes`: features that each of several workers proposes for a
  // node; 0: no voting.
  DeviceRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
             TreePolicy& policy, Workspace& workspace, Collective& workers, std::size_t n_votes);
  ~DeviceRows() override;

  void grow(TreePolicy& policy, Team& team) override;
  std::span<const SubtreeNodes* const> subtrees() const override;
  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override;
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team) override;
  std::vector<double> target_sums(const TreeShape& shape, const LeafTarget& target) override;
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const override;
  const TreeRows& tree_rows() const override { return tree_rows_; }
  TreeRows training_rows() const override {
    return {n_training_, nullptr, table_rows_.empty() ? nullptr : table_rows_.data()};
  }
  const std::uint32_t* leaves() const override;
  void propose(Proposal& proposal, const Gradients& gradients, Team& team) override;
  std::unique_ptr<RoundRows> make_round(const RoundSettings& settings) override;
  void draw_with_replacement(const DrawChances* chances, std::size_t n_draws, const DrawSeed& seed,
                             Sample& out, Team& team) override;
  std::vector<std::uint32_t> leaves_outside(const TreeShape& shape) override;

 private:
  struct Parts;  // memory of the device

  // Pairs of rows on the device, and their sums.
  struct Pairs {
    PairRows rows;
    int g_exponent, h_exponent;
    std::vector<std::int64_t> sum_abs_g, sum_h;
  };
  void use_rows(const Sample* sample);
  Pairs pairs_of(const Gradients& gradients, std::size_t output);
  Pairs tree_pairs_of(const Gradients& gradients, std::size_t output);
  TargetPairs targets_of(const Gradients& gradients, std::size_t output);
  std::size_t empty_copy(std::size_t n) const;
  void quantise(const TreeScaling& scaling, std::uint32_t seed);
  LeafSums sums_above(const TreeShape& shape, const Pairs& pairs, std::vector<std::int64_t> sums);

  const Codes &table_, &codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  std::vector<RowId> table_rows_;
  std::size_t n_training_;
  TreeRows tree_rows_{};
  Workspace& space_;
  Collective& workers_;
  const Sample* sample_ = nullptr;
  Pairs pairs_{};
  std::unique_ptr<Parts> parts_;
  const SubtreeNodes* whole_ = nullptr;
};

}  // namespace arboost::cuda
