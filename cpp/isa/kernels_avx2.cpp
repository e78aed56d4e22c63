// Kernels compiled for CPUs with AVX2. Empty on other processors.
#if defined(ARBOOST_X86_64)
#define ARBOOST_ISA avx2
#include "isa/variant.h"
#endif
