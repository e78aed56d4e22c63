// The rows of a tree as elements, partitioned among its nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>  // pair
#include <vector>

#include "base/collective.h"
#include "base/parallel.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/policy/tree_policy.h"  // TreeScale
#include "grow/rows/stretches.h"
#include "grow/rows/tree_scaling.h"
#include "grow/rows/workspace.h"
#include "grow/sample/sample.h"
#include "grow/trees/grow_node.h"
#include "loss/apply.h"

namespace arboost {

// Fixed-point pairs of a tree's rows, by number i and output k: pairs[i * row_stride + k *
// output_stride], with the exact sums that their scale is chosen from.
struct TreePairs {
  const FixedPair* pairs;
  std::size_t row_stride, output_stride;
  int g_exponent, h_exponent;
  std::vector<std::int64_t> sum_abs_g, sum_h;  // per output

  const FixedPair& at(std::size_t i, std::size_t k) const {
    return pairs[i * row_stride + k * output_stride];
  }
};

// Throws std::invalid_argument for a target, of n rows, that the criterion does not allow: class
// shares and counts must be nonnegative.
void check_targets(Criterion criterion, const TreePairs& pairs, std::size_t n);

// Two arrays of elements. A node owns one range of one array; its children own the two parts of the
// same range in the other array:
//
//   buffer 0   [ a b c d e f g h ]      node, split into {a c d} and {b e f g h}
//   buffer 1   [ a c d | h g f e b ]    its children
//
// Or one array, in stretches of the table: a node owns one range in each, which is divided in
// place.
class RowPartition {
 public:
  // `table_rows`: the training rows among those of the codes, ascending; empty for all of them.
  // `wide`: pairs are never narrow. `sum_bits`: as in TreeParams. Workers hold the training rows
  // one after the other, by rank; each has a partition of its own.
  RowPartition(const Codes& codes, std::span<const RowId> table_rows, std::size_t outputs,
               bool wide, int sum_bits, Workspace& workspace, Collective& workers);

  // Starts a tree on the rows of a sample, or on all training rows for null: scales the gradients
  // of one output, or of all for vector leaves, to integers whose sums over all workers fit a
  // PackedSum, narrow ones if they may be, and puts every row into the root's range of buffer 0.
  // The sample must outlive the tree.
  void prepare(const Gradients& gradients, std::size_t output, const Sample* sample,
               std::uint32_t seed, bool may_be_narrow, Team& team);

  void check_targets(Criterion criterion) const {
    arboost::check_targets(criterion, pairs_, rows_.n);
  }

  // Nodes are divided in stretches from now on.
  void use_stretches() { stretches_.emplace(codes_.n_rows, codes_.window_rows()); }
  Stretches& stretches() { return *stretches_; }

  // Whether the contribution of a row has a count, too.
  void count_rows(bool counted) { sums_.counted = counted; }

  // Makes all training rows the tree's rows; invalidates its elements.
  void use_all(const Gradients& gradients, std::size_t output, Team& team);

  std::size_t n_training() const { return n_training_; }
  const TreeRows& rows() const { return rows_; }     // of the tree
  const TreePairs& pairs() const { return pairs_; }  // ... and their gradients
  TreeRows training_rows() const { return {n_training_, nullptr, table_rows()}; }
  // Other gradients of the tree's rows, times the weights of the sample; invalidates pairs().
  TreePairs pairs_of_rows(const Gradients& gradients, std::size_t output, Team& team);

  bool is_sample() const { return is_sample_; }       // of the training rows
  std::size_t all_rows() const { return all_rows_; }  // of the tree, over all workers

  const RowSums& sums() const { return sums_; }
  TreeScale scale() const;

  const Element* elements(const GrowNode& node) const {
    return space_.elements[node.buffer].data() + node.begin;
  }
  const Element* elements(const Stretches::Range& range) const {
    return space_.elements[0].data() + range.begin;
  }
  // Calls use(elements, n) for the elements of a node.
  template <class Use>
  void each_range(const GrowNode& node, Use use) const {
    if (!stretches_) return use(elements(node), node.n_rows());
    for (const Stretches::Range& range : stretches_->of(node)) use(elements(range), range.size());
  }
  // Reads the contributions of n rows to a histogram slot, [n][channels].
  void read_values(const Element* elements, std::size_t n, std::int64_t* values) const;
  // True if neither the rounding to fixed point nor that of the values was lossy, as for the
  // gradients of class indicators.
  bool values_are_exact(const Gradients& gradients, std::size_t output) const;
  // Lowest and highest hessian of n rows, summed over the outputs.
  std::pair<std::int64_t, std::int64_t> hessian_range(const Element* elements, std::size_t n) const;
  // True if some row of the node has a zero hessian in all outputs, and rows are not counted.
  bool any_empty(const GrowNode& node) const {
    return !sums_.counted && hessian_range(elements(node), node.n_rows()).first == 0;
  }

  // The test of the node's split.
  SplitRule rule(const GrowNode& node) const;
  // Sends the node's rows to its children's ranges; returns how many went left.
  std::size_t split(const GrowNode& node, int member, Team& team);
  // The same for one range of the node, which is in the window.
  void split_stretch(const GrowNode& node, const SplitRule& rule, const Stretches::Range& range,
                     const RowWindow& window, int member);

 private:
  const RowId* table_rows() const { return table_rows_.empty() ? nullptr : table_rows_.data(); }
  TreePairs gather(const Gradients& gradients, std::size_t output, Team& team);
  void prepare_narrow(const TreeScaling& scaling, std::uint32_t seed, Team& team);
  void prepare_wide(const TreeScaling& scaling, std::uint32_t seed, Team& team);
  void set_scale(const TreeScaling& scaling);

  class Marks;
  void make_marks(std::size_t n_members);
  ColumnCodes column_of(std::size_t store, std::size_t n) const;
  // Calls use(column, rule) with the codes that tell the side of n elements of a node.
  template <class Use>
  auto with_column(const GrowNode& node, const SplitRule& rule, const Element* elements,
                   std::size_t n, const ColumnCodes& codes, int member, Use use);
  std::size_t split_by(const ColumnCodes& column, const SplitRule& rule, const GrowNode& node,
                       int member, Team& team);

  const Codes& codes_;
  std::vector<RowId> table_rows_;
  std::size_t n_training_;
  TreeRows rows_{};
  TreePairs pairs_{};
  const float* weights_ = nullptr;  // of the tree's rows, by number; null: all 1
  RowSums sums_;
  bool always_wide_;
  int sum_bits_;
  Workspace& space_;
  Collective& workers_;
  std::optional<Stretches> stretches_;
  bool is_sample_ = false;
  std::size_t all_rows_ = 0;
  std::uint32_t first_position_ = 0;  // of this worker's training rows among those of all
  double g_scale_ = 1, h_scale_ = 1;
  int g_shift_ = 0, h_shift_ = 0;  // bits that values have lost
};

// Least number of rows of a node for which parallel work pays.
constexpr std::size_t shared_node_rows = 16384;

}  // namespace arboost
