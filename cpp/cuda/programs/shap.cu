// Rows -> SHAP values.
#include "explain/device/kernels/shap.cu"
