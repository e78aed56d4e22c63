// Rows in the memory of a CUDA device: batches of nodes, a launch for each stage of a batch.
//
// The host decides the policy from a few numbers of each node. Splits of tables whose features all
// have stored columns of their own, without categories, are searched on the device; histograms of
// others are copied to the host and searched there. The tree is the same as in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/collective.h"
#include "bin/propose.h"
#include "cuda/device.h"
#include "grow/device/device_trees.h"
#include "grow/device/rounds/device_rounds.h"
#include "grow/device/table/device_table.h"
#include "grow/policy/node_rows.h"
#include "grow/rows/histograms.h"
#include "grow/rows/leaf_sizes.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/tree_scaling.h"
#include "grow/split/split_search.h"

namespace arboost::cuda {

struct DeviceState;

// Number of growers of trees on n_rows rows of a table that fit into the free memory of a device;
// at least one, which may not.
std::size_t growers_that_fit(const Codes& codes, std::size_t n_rows, std::size_t width, int device);

class DeviceRows final : public BatchRows {
 public:
  // `codes` are grown on, made here by `propose` where they are not the `table` itself, which the
  // splits of grown trees refer to.
  DeviceRows(const Codes& table, const Codes& codes, std::span<const RowId> table_rows,
             TreePolicy& policy, Workspace& workspace);
  ~DeviceRows() override;

  void grow(TreePolicy& policy, Team& team) override;
  std::span<const SubtreeNodes* const> subtrees() const override;
  TreeScale start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                       Team& team) override;
  LeafSums leaf_sums(const TreeShape& shape, const GrownTrees& forest, const Gradients& gradients,
                     std::size_t output, const TreeRequest& request, Team& team) override;
  LeafSums sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                   Team& team) override;
  void add_values(const GrownTrees& forest, ScoreRows scores, Team& team) const override;
  const TreeRows& tree_rows() const override { return tree_rows_; }
  TreeRows training_rows() const override {
    return {n_training_, nullptr, table_rows_.empty() ? nullptr : table_rows_.data()};
  }
  const std::uint32_t* leaves() const override;
  void propose(Proposal& proposal, const Gradients& gradients, Team& team) override;
  std::unique_ptr<RoundRows> make_round(const RoundSettings& settings) override;

  // Scores and gradients on the device, and rounds of boosting there.
  DeviceRounds& rounds();
  void start_scores(std::span<const double> scores_of_row);
  // Opens them for the rows of a loss, and makes the device current.
  void open_rounds(const LossRows& rows, std::optional<Device::Use>& use);
  // Copies newer scores back, after which the host may change them.
  void fetch_scores(double* scores);
  void add_values(const GrownTrees& forest, std::size_t output);
  // The same for rounds in steps, in which the device is not current.
  bool has_scores() const;
  void add_last(const GrownTrees& forest, std::size_t output);
  // Quantiles of the residuals in each leaf of the last tree: refit_leaves of loss/leaf.h.
  std::vector<double> leaf_quantiles(std::size_t output, double alpha, double weight_scale,
                                     std::size_t n_nodes);
  // The same samples as in grow/sample/sample.h, from gradients on the device.
  void draw_uniform(double rate, std::uint32_t seed, Sample& out);
  void draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t seed, Sample& out);
  void draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t seed, Sample& out);
  void draw_with_replacement(std::size_t n_draws, const DrawSeed& seed, Sample& out,
                             Team& team) override;

 protected:
  void open_root(TreePolicy& policy, Team& team) override;
  std::size_t batch_size() const override;
  void expand(TreePolicy& policy, std::span<GrowNode* const> batch, Team& team) override;
  void forget(GrowNode& node) override;

 private:
  struct Batch;

  // Pairs of the tree's rows on the device, and their sums.
  struct Pairs {
    const FixedPair* pairs;  // by number i
    std::uint64_t row_stride, output_stride;
    int g_exponent, h_exponent;
    std::vector<std::int64_t> sum_abs_g, sum_h;
  };
  // Takes the pairs of all training rows for tests of purity.
  void take_targets(const Gradients& gradients, std::size_t output);
  std::vector<float> norms_at(const NormArgs& norms, const NormRows& rows);
  template <class Plan>
  void collect(const char* kernel, const Plan& plan, bool weighted, Sample& out);
  std::size_t empty_copy(std::size_t n) const;
  Pairs pairs_of(const Gradients& gradients, std::size_t output, const Sample* sample);
  struct ColumnStorage {
    std::uint32_t first_slot = 0, usual = no_code;
    std::vector<std::uint8_t> own_codes;  // by slot; empty: slots are by code
  };
  ColumnStorage storage_of(std::size_t feature) const;
  void send_columns();
  void send_tree() const;
  LeafSums whole_sums(const TreeShape& shape);
  void walk() const;
  void take_root_sums(GrowNode& root);
  RowValues row_values() const;
  void quantise(const TreeScaling& scaling, std::uint32_t seed);
  std::int64_t* acquire();
  void release(std::int64_t* histogram);
  void free_histograms();
  void plan_histograms(std::size_t n_rows, BatchWork& work);
  void launch_histograms(const BatchWork& work);
  Batch open_batch(TreePolicy& policy, std::span<GrowNode* const> nodes);
  void send(Batch& batch);
  void request(GrowNode& node, std::uint32_t work, std::uint32_t side, Batch& batch);
  void launch_searches(const Batch& batch);
  void take_splits(const Batch& batch);
  void search_on_host(std::span<GrowNode* const> nodes, Team& team);
  // The nodes that may be split: without those whose rows all have the same target, for CART.
  std::vector<GrowNode*> impure(std::vector<GrowNode*> nodes);
  // Leaves of the tree's rows: by a walk that notes them, or noted before.
  enum class RowsOf { walk, known_leaves };
  LeafSums summed(const TreeShape& shape, const Pairs& pairs, RowsOf source);

  const Codes &table_, &codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  std::vector<RowId> table_rows_;
  std::size_t n_training_;
  TreeRows tree_rows_{};
  bool searches_on_device_;  // else histograms are searched here
  bool is_mixed_ = false;    // some features are categories, share stored columns or have many bins
  Workspace& space_;
  Alone alone_;
  RowPartition host_rows_;  // without rows: searches on the host read histograms only
  LeafSizes sizes_;
  Histograms slots_;  // the layout of histograms, and one of them
  SplitSearch search_;
  ColumnSampler::Scratch columns_;
  Pairs pairs_{};
  TargetPairs targets_{};
  const Sample* sample_ = nullptr;
  TreeRequest request_{};  // of the tree that grows
  TreeScaling scaling_{false, {0, 0, 0}, {0, 0, 0}};
  // Leaves of the last tree: noted on the device, copied to the host.
  mutable bool has_sent_ = false, has_walked_ = false, has_leaves_ = false;
  const GrownTrees* walked_forest_ = nullptr;  // whose last tree it is
  std::unique_ptr<DeviceState> state_;
  std::unique_ptr<DeviceTrees> trees_;  // null: trees grow by batches of nodes
  const SubtreeNodes* whole_ = nullptr;
};

}  // namespace arboost::cuda
