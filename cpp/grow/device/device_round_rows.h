// Scores, gradients and samples of training rows in the memory of a CUDA device.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "grow/device/device_rows.h"
#include "grow/rounds/round_rows.h"

namespace arboost::cuda {

class DeviceRoundRows final : public RoundRows {
 public:
  DeviceRoundRows(DeviceRows& rows, const RoundSettings& settings)
      : RoundRows(settings), rows_(rows) {}

  void start_scores(std::span<const double> of_row, Team& team) override;
  void set_scores(const double* scores) override;
  const double* scores() override;
  void add_last(const GrownTrees& forest, std::size_t output, Team& team) override;
  void add_tree(const GrownTrees& forest, std::size_t tree, std::size_t output, double factor,
                Team& team) override;
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
  void open();

  DeviceRows& rows_;
  Buffer<double> scores_;    // of the host, where it has asked for them
  double weight_scale_ = 0;  // of leaf quantiles; 0: not known yet
};

}  // namespace arboost::cuda
