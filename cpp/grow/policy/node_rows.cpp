// Growth in batches, up to the limits of the queue and the rows.
#include "grow/policy/node_rows.h"

#include <algorithm>
#include <bit>  // bit_width
#include <stdexcept>

#include "loss/leaf.h"  // no_leaf

namespace arboost {

std::vector<std::uint32_t> NodeRows::leaf_of_position() const {
  std::vector<std::uint32_t> leaf(training_rows().n, no_leaf);
  const TreeRows& rows = tree_rows();
  if (rows.positions == nullptr && rows.n != leaf.size())
    throw std::logic_error("the rows of the last tree are known to its device only");
  const std::uint32_t* leaf_of_row = leaves();
  for (std::size_t i = 0; i < rows.n; ++i) leaf[rows.position(i)] = leaf_of_row[rows.row(i)];
  return leaf;
}

void NodeRows::propose(Proposal& proposal, const Gradients& gradients, Team& team) {
  if (hessians_.size() == 0) {
    const std::size_t n_rows = proposal.codes().n_rows;
    hessians_ = Buffer<std::uint32_t>(n_rows);
    std::fill_n(hessians_.data(), n_rows, 0u);
  }
  read_hessians(gradients, team);
  proposal.update({hessians_.data(), hessians_.size()}, team);
}

void NodeRows::draw_with_replacement(const DrawChances* chances, std::size_t n_draws,
                                     const DrawSeed& seed, Sample& out, Team& team) {
  if (chances != nullptr) return bootstrap(*chances, n_draws, seed, out, team);
  bootstrap(training_rows().n, n_draws, seed, out, team);
}

std::vector<std::uint32_t> NodeRows::leaves_outside(const TreeShape&) {
  throw std::logic_error("the rows outside of a sample are known in this process");
}

void NodeRows::read_hessians(const Gradients& gradients, Team& team) {
  const TreeRows rows = training_rows();
  const auto shift = std::bit_width(gradients.outputs - 1);  // so that the sum of outputs fits
  team.for_chunks(0, rows.n, 65536, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t h = 0;
      for (std::size_t k = 0; k < gradients.outputs; ++k)
        h += gradients.pairs[i * gradients.row_stride() + k * gradients.output_stride()].h;
      hessians_[rows.row(i)] = static_cast<std::uint32_t>(h >> shift);
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
