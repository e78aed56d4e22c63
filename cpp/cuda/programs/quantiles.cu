// Leaves of quantiles.
#include "grow/device/kernels/quantiles.cu"
