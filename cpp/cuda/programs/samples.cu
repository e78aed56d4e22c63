// Samples by gradients.
#include "grow/device/kernels/samples.cu"
