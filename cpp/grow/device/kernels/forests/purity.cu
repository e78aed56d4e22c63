// Rows of nodes -> bounds of the one target value that all of them may have.
#include "grow/device/kernels/forests/purity.cuh"

// Grid: nodes, outputs.
extern "C" __global__ void __launch_bounds__(BlockGroup::size)
    value_bounds(const RowRange* nodes, const Element* first_buffer, const Element* second_buffer,
                 TargetPairs targets, ValueBounds* bounds) {
  const RowRange node = nodes[blockIdx.x];
  const Element* elements = (node.buffer == 0 ? first_buffer : second_buffer) + node.begin;
  const ValueBounds of_node =
      bounds_of_rows<BlockGroup>(targets, elements, node.end - node.begin, blockIdx.y);
  if (threadIdx.x == 0) bounds[blockIdx.x * gridDim.y + blockIdx.y] = of_node;
}
