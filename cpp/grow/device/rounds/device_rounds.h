// Rounds of gradient boosting with targets, scores and gradients in the memory of a device.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/device.h"
#include "cuda/totals.h"
#include "loss/apply.h"

namespace arboost::cuda {

// Scores and gradients of the training rows of a fit. The device must be current in all calls.
class DeviceRounds {
 public:
  DeviceRounds(Device& device, Queue& queue) : device_(device), queue_(queue) {}

  // The scores of all rows; the host has them after fetch().
  void start(std::span<const double> scores_of_row, std::size_t n_rows);
  // Takes targets and weights, once, and scores, where the host has newer ones.
  void open(const LossRows& rows);
  // Copies the scores back: the host may change them from here on.
  void fetch(double* scores);

  // The same as arboost::apply_loss. The pairs stay on the device, until the next call with or
  // without least_squares: `out` has their scale and sums.
  void apply_loss(const LossSpec& spec, double largest_weight, Gradients& out);
  // Scores of one output on, to which values of trees are added.
  double* scores(std::size_t output) {
    is_newer_ = true;
    return scores_.data() + output;
  }
  std::size_t outputs() const { return outputs_; }
  // The device has the newest scores, and those of the host are not in use.
  bool is_current() const { return is_current_; }
  // All of them in device memory.
  LossRows rows() const { return {y_.data(), weight_.data(), scores_.data(), n_rows_, outputs_}; }

 private:
  std::vector<std::int64_t> run(const LossSpec& spec, const Gradients& out, bool bounds_only);

  Device& device_;
  Queue& queue_;
  const double* y_of_ = nullptr;  // host arrays that the device has copies of
  std::size_t n_rows_ = 0, outputs_ = 0;
  DeviceArray<double> y_, weight_, scores_, parameters_;
  DeviceArray<FixedPair> pairs_[2];  // of a loss, and of its least-squares gradients
  Totals totals_;
  bool is_newer_ = false;    // than the host's scores
  bool is_current_ = false;  // the host's scores have not changed since
};

}  // namespace arboost::cuda
