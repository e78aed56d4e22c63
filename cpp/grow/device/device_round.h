// A round of gradient boosting in the memory of a device: targets, scores, gradients, samples of
// rows, and leaf values by residuals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "cuda/device.h"
#include "cuda/totals.h"
#include "grow/device/device_leaves.h"
#include "grow/device/records/quantile_records.h"
#include "grow/device/table/added_trees.h"
#include "grow/rounds/round_rows.h"

namespace arboost::cuda {

class DeviceRound final : public RoundRows {
 public:
  DeviceRound(DeviceState& state, DeviceLeaves& leaves, const RoundSettings& settings);
  ~DeviceRound() override;

  void start_scores(std::span<const double> of_row, Team& team) override;
  void set_scores(const double* scores) override;
  const double* scores() override;
  void add_last(const GrownTrees& forest, std::size_t output, Team& team) override;
  void add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output, double factor,
                Team& team) override;
  // The pairs stay on the device: the gradients have their scale and sums.
  const Gradients& take_gradients(const LossSpec& spec, Team& team) override;
  double huber_delta(double alpha, Team& team) override;
  std::vector<double> refit_leaves(std::size_t output, const LeafRule& rule, std::size_t n_nodes,
                                   Team& team) override;

 protected:
  void draw_uniform(double rate, std::uint32_t bits, Team& team) override;
  void draw_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t bits, Team& team) override;
  void draw_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t bits, Team& team) override;

 private:
  struct Memory {  // of the device
    DeviceArray<double> y, weight, scores, parameters;
    DeviceArray<FixedPair> pairs[2];  // of a loss, and of its least-squares gradients
    Totals loss_totals;
    TreeAdder adder;
    DeviceArray<float> norms;
    DeviceArray<ResidualItem> residuals;
    DeviceArray<LeafQuantile> quantiles;
    DeviceArray<std::int64_t> digit_counts;
    DeviceArray<double> statistics;
    DeviceArray<unsigned long long> bad_residual;
  };

  LossRows rows() const;
  std::vector<std::int64_t> run(const LossSpec& spec, const Gradients& out, bool bounds_only);
  std::vector<float> norms_at(const NormArgs& norms, const NormRows& rows);
  double unit_of_weights(Team& team);
  std::vector<double> statistics_of(const ResidualRows& rows, std::size_t n_leaves,
                                    const LeafStatistic& statistic);
  template <class Plan>
  void collect(const char* kernel, const Plan& plan, bool weighted, double least);

  DeviceState& state_;
  DeviceLeaves& leaves_;
  std::unique_ptr<Memory> memory_;
  Buffer<double> host_scores_;  // where the host has asked for them
  bool host_is_old_ = true;
  double weight_scale_ = 0;  // of residuals; 0: not known yet
};

// The sample of a tree, drawn with replacement from n_rows training rows; it stays on the device.
// `ends` are those of DrawChances; null: equal chances.
void draw_with_replacement(DeviceState& state, std::size_t n_rows, const std::uint64_t* ends,
                           std::uint64_t length, std::size_t n_draws, const DrawSeed& seed,
                           Sample& out);

}  // namespace arboost::cuda
