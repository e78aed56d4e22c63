// Growth in batches, up to the limits of the queue and the rows.
#include "grow/policy/node_rows.h"

#include <bit>  // bit_width

namespace arboost {

void NodeRows::read_hessians(const Gradients& gradients, std::uint32_t* hessians, Team& team) {
  const TreeRows rows = training_rows();
  const auto shift = std::bit_width(gradients.outputs - 1);  // so that the sum of outputs fits
  team.for_chunks(0, rows.n, 65536, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t h = 0;
      for (std::size_t k = 0; k < gradients.outputs; ++k)
        h += gradients.pairs[i * gradients.row_stride() + k * gradients.output_stride()].h;
      hessians[rows.row(i)] = static_cast<std::uint32_t>(h >> shift);
    }
  });
}

void NodeBatches::grow_by_batches(TreePolicy& policy, Team& team) {
  open_root(policy, team);
  policy.add_root();
  std::vector<GrowNode*> batch;
  for (;;) {
    policy.take_batch(batch_size(), batch);
    if (batch.empty()) break;
    expand(policy, batch, team);
    for (GrowNode* node : batch) policy.report(*node, [this](GrowNode& leaf) { forget(leaf); });
  }
}

}  // namespace arboost
