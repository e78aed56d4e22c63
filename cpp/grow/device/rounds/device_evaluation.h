// An evaluation set in the memory of a device: its codes, scores and mean loss. The same bits as on
// the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/device.h"
#include "grow/device/table/added_trees.h"
#include "grow/rounds/evaluation_rows.h"
#include "grow/trees/grown_trees.h"
#include "loss/apply.h"
#include "table/codes.h"

namespace arboost::cuda {

class DeviceEvaluation final : public EvaluationRows {
 public:
  // Rows of a table, all or those of an index, with targets, weights and start scores. The codes
  // must live as long.
  DeviceEvaluation(int device, const Codes& codes, std::span<const RowId> table_rows,
                   const LossRows& rows);
  ~DeviceEvaluation() override;

  // Launches the work of a round, and does not wait for it.
  void add(const GrownTrees& forest, std::size_t first, std::size_t n, double factor,
           Team& team) override;
  void start_loss(const LossSpec& spec, Team& team) override;
  std::vector<double> losses() override;
  void set_scores(const double* scores) override;
  const double* scores() override;

 private:
  struct State;  // memory of the device

  void collect();

  Device& device_;
  const Codes& codes_;
  std::unique_ptr<State> state_;
};

}  // namespace arboost::cuda
