// CART: whole trees, and purity of nodes.
#include "grow/device/kernels/large_nodes.cu"
#include "grow/device/kernels/medium_nodes.cu"
#include "grow/device/kernels/purity.cu"
#include "grow/device/kernels/small_nodes.cu"
