// Evaluation sets of boosters.
#include "grow/device/kernels/evaluation.cu"
