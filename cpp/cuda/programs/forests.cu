// CART: whole trees, purity of nodes, and draws with replacement.
#include "grow/device/kernels/bootstrap.cu"
#include "grow/device/kernels/large_nodes.cu"
#include "grow/device/kernels/medium_nodes.cu"
#include "grow/device/kernels/purity.cu"
#include "grow/device/kernels/small_nodes.cu"
