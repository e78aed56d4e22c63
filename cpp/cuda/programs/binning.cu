// Tables -> codes.
#include "bin/device/kernels/columns.cu"
#include "bin/device/kernels/encode.cu"
