// Bins of each round.
#include "grow/device/kernels/proposals.cu"
