// Rows of nodes -> whether all have the same target.
#include "grow/device/kernels/forests/purity.cuh"

// Grid: nodes.
extern "C" __global__ void __launch_bounds__(BlockGroup::size)
    pure_nodes(const RowRange* nodes, const Element* first_buffer, const Element* second_buffer,
               TargetPairs targets, std::uint32_t* is_pure_node) {
  const RowRange node = nodes[blockIdx.x];
  const Element* elements = (node.buffer == 0 ? first_buffer : second_buffer) + node.begin;
  const bool pure = is_pure<BlockGroup>(targets, elements, node.end - node.begin);
  if (threadIdx.x == 0) is_pure_node[blockIdx.x] = pure ? 1 : 0;
}
