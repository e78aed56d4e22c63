// Growth in batches, up to the limits of the queue and the rows.
#include "grow/policy/node_rows.h"

namespace arboost {

void BatchRows::grow(TreePolicy& policy, Team& team) {
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
