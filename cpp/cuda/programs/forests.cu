// CART: whole trees, purity of nodes, sums of targets by leaf, and draws with replacement.
#include "grow/device/kernels/forests/bootstrap.cu"
#include "grow/device/kernels/forests/large_nodes.cu"
#include "grow/device/kernels/forests/means.cu"
#include "grow/device/kernels/forests/medium_nodes.cu"
#include "grow/device/kernels/forests/purity.cu"
#include "grow/device/kernels/forests/small_nodes.cu"
