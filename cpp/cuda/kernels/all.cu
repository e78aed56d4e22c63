// All kernels, as one program.
#include "grow/device/kernels/gradients.cu"
#include "grow/device/kernels/histograms.cu"
#include "grow/device/kernels/leaves.cu"
#include "grow/device/kernels/partition.cu"
#include "grow/device/kernels/purity.cu"
#include "grow/device/kernels/rows.cu"
#include "grow/device/kernels/search.cu"
