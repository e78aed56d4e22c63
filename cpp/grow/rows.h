// The rows of a tree, as elements that the nodes share out among themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "grow/queue.h"
#include "kernels.h"
#include "loss/apply.h"
#include "parallel.h"

namespace arboost {

// Two arrays of elements. A node owns one range of one array; its children own the two parts of the
// same range in the other array:
//
//   buffer 0   [ a b c d e f g h ]      node, split into {a c d} and {b e f g h}
//   buffer 1   [ a c d | h g f e b ]    its children
class RowPartition {
 public:
  RowPartition(const Codes& codes, std::size_t outputs, bool counted);

  // Scales the gradients of one output, or of all when trees have vector leaves, to integers whose
  // sums fit a PackedSum, and puts every row into the root's range of buffer 0.
  void prepare(const Gradients& gradients, std::size_t output, std::uint32_t seed, Team& team);

  const RowSums& sums() const { return sums_; }
  double g_scale() const { return g_scale_; }  // real value of one integer unit
  double h_scale() const { return h_scale_; }

  const Element* elements(const GrowNode& node) const {
    return buffers_[node.buffer].data() + node.begin;
  }
  // What each of a node's rows adds to a histogram slot, [n_rows][channels].
  void read_values(const GrowNode& node, std::int64_t* values) const;

  // Sends the node's rows to its children's ranges; returns how many went left.
  std::size_t split(const GrowNode& node, int member, Team& team);

 private:
  void prepare_narrow(const Gradients& gradients, std::size_t output, int g_shift, int h_shift,
                      std::uint32_t seed, Team& team);
  void prepare_wide(const Gradients& gradients, std::size_t output, Team& team);

  const Codes& codes_;
  RowSums sums_;
  Buffer<Element> buffers_[2];
  std::vector<PackedSum> wide_;
  double g_scale_ = 1, h_scale_ = 1;
};

// Rows of a node below which it is not worth sharing its work out among threads.
constexpr std::size_t shared_node_rows = 16384;

}  // namespace arboost
