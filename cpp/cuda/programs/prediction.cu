// Rows -> scores, leaves and predictions.
#include "predict/device/kernels/answers.cu"
#include "predict/device/kernels/codes.cu"
#include "predict/device/kernels/walk.cu"
