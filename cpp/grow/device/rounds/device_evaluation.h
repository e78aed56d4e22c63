// An evaluation set in the memory of a device: its codes, scores and mean loss. The same bits as on
// the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/device.h"
#include "grow/device/table/added_trees.h"
#include "grow/trees/grown_trees.h"
#include "loss/apply.h"
#include "table/codes.h"

namespace arboost::cuda {

class DeviceEvaluation {
 public:
  // Rows of a table, all or those of an index, with targets, weights and start scores. The codes
  // must live as long.
  DeviceEvaluation(int device, const Codes& codes, std::span<const RowId> table_rows,
                   const LossRows& rows);
  ~DeviceEvaluation();
  DeviceEvaluation(const DeviceEvaluation&) = delete;
  DeviceEvaluation& operator=(const DeviceEvaluation&) = delete;

  std::size_t n_rows() const { return n_rows_; }
  std::size_t outputs() const { return outputs_; }

  // Adds n trees of a forest; those of a round follow each other in the order of their outputs.
  void add(const GrownTrees& forest, std::size_t first, std::size_t n);
  // Adds trees in turn, each times its factor to its output.
  void add(const GrownTrees& forest, std::span<const AddedTree> trees);
  // Starts the computation of the loss at the scores so far, and does not wait for it.
  void start_loss(const LossSpec& spec);
  // The losses since the last call, in the order of their starts; as arboost::mean_loss.
  std::vector<double> losses();
  void set_scores(const double* scores);
  void fetch_scores(double* scores) const;

 private:
  struct State;  // memory of the device

  void collect();

  Device& device_;
  const Codes& codes_;
  std::size_t n_rows_, outputs_;
  std::unique_ptr<State> state_;
};

}  // namespace arboost::cuda
