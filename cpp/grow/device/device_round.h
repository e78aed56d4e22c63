// A round of gradient boosting in the memory of a device: targets, scores, gradients, samples of
// rows, and leaf values by residuals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/device.h"
#include "cuda/totals.h"
#include "grow/device/device_leaves.h"
#include "grow/device/records/quantile_records.h"
#include "grow/device/table/added_trees.h"
#include "grow/sample/sample.h"
#include "grow/trees/grown_trees.h"
#include "loss/apply.h"
#include "loss/leaf.h"

namespace arboost::cuda {

class DeviceRound {
 public:
  // Splits of trees refer to `table`.
  DeviceRound(DeviceState& state, DeviceLeaves& leaves, const Codes& table, std::size_t n_training)
      : state_(state), leaves_(leaves), table_(table), n_rows_(n_training) {}

  // The scores of all rows; the host has them after fetch().
  void start(std::span<const double> scores_of_row);
  // Takes targets and weights, once, and scores, where the host has newer ones.
  void open(const LossRows& rows);
  // Copies newer scores back: the host may change them from here on.
  void fetch(double* scores);
  // The device has the newest scores, and those of the host are not in use.
  bool is_current() const { return is_current_; }
  std::size_t outputs() const { return outputs_; }

  // The same as arboost::apply_loss. The pairs stay on the device, until the next call with or
  // without least_squares: `out` has their scale and sums.
  void apply_loss(const LossSpec& spec, double largest_weight, Gradients& out);
  // The same samples as in grow/sample/sample.h, from gradients on the device; their positions and
  // weights stay there.
  void draw_uniform(double rate, std::uint32_t seed, Sample& out);
  void draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t seed, Sample& out);
  void draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t seed, Sample& out);
  void draw_with_replacement(std::size_t n_draws, const DrawSeed& seed, Sample& out);
  // Values of the last tree's leaves from the residuals of its rows: refit_leaves of loss/leaf.h.
  std::vector<double> refit_leaves(std::size_t output, const LeafRule& rule, double weight_scale,
                                   std::size_t n_nodes);
  // Huber's delta: the quantile at alpha of the absolute residuals of all rows; where it is 0, of
  // those that are not 0.
  double huber_delta(double alpha, double weight_scale);
  // Adds the values of the last tree to the scores of one output on.
  void add_last(const GrownTrees& forest, std::size_t output);
  // Adds trees in turn, each times its factor to its output.
  void add(const GrownTrees& forest, std::span<const AddedTree> trees);

 private:
  LossRows rows() const { return {y_.data(), weight_.data(), scores_.data(), n_rows_, outputs_}; }
  std::vector<std::int64_t> run(const LossSpec& spec, const Gradients& out, bool bounds_only);
  std::vector<float> norms_at(const NormArgs& norms, const NormRows& rows);
  std::vector<double> statistics_of(const ResidualRows& rows, std::size_t n_leaves,
                                    const LeafStatistic& statistic);
  template <class Plan>
  void collect(const char* kernel, const Plan& plan, bool weighted, Sample& out);

  DeviceState& state_;
  DeviceLeaves& leaves_;
  const Codes& table_;
  std::size_t n_rows_, outputs_ = 0;
  // Host arrays that the device has copies of.
  const double *y_of_ = nullptr, *weight_of_ = nullptr;
  DeviceArray<double> y_, weight_, scores_, parameters_;
  DeviceArray<FixedPair> pairs_[2];  // of a loss, and of its least-squares gradients
  bool is_newer_ = false;            // than the host's scores
  bool is_current_ = false;          // the host's scores have not changed since
  Totals loss_totals_, sample_totals_;
  TreeAdder adder_;
  DeviceArray<std::uint32_t> draw_counts_;
  DeviceArray<float> norms_;
  DeviceArray<ResidualItem> residuals_;
  DeviceArray<LeafQuantile> quantiles_;
  DeviceArray<std::int64_t> digit_counts_;
  DeviceArray<double> statistics_;
  DeviceArray<unsigned long long> bad_residual_;
};

}  // namespace arboost::cuda
