// All kernels, as one program.
#include "cuda/kernels/grow.cu"
#include "cuda/kernels/loss.cu"
