// Kernels compiled for CPUs with AVX-512. Empty on other processors.
#if defined(ARBOOST_X86_64)
#define ARBOOST_ISA avx512
#include "isa/variant.h"
#endif
