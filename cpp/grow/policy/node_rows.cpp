// Growth in batches: every node that is ready, up to the limits of the queue and the rows.
#include "grow/policy/node_rows.h"

namespace arboost {

void BatchRows::grow(TreePolicy& policy, Team& team) {
  open_root(policy, team);
  policy.add_root();
  std::vector<GrowNode*> batch;
  for (TreePolicy::Next next = policy.take(); !next.is_finished; next = policy.take()) {
    batch.clear();
    const double least_gain = fills_batches() ? policy.least_gain() : 0;
    const auto take = [&] { return fills_batches() ? policy.take(least_gain) : policy.take(); };
    for (; next.node != nullptr; next = take()) {
      batch.push_back(next.node);
      if (batch.size() == batch_size()) break;
    }
    expand(policy, batch, team);
    for (GrowNode* node : batch) policy.report(*node, [this](GrowNode& leaf) { forget(leaf); });
  }
}

}  // namespace arboost
