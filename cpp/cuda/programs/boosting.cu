// Rounds of boosters, and batches of nodes.
#include "grow/device/kernels/gradients.cu"
#include "grow/device/kernels/histograms.cu"
#include "grow/device/kernels/leaves.cu"
#include "grow/device/kernels/partition.cu"
#include "grow/device/kernels/rows.cu"
#include "grow/device/kernels/search/search.cu"
