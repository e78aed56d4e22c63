// Kernels in portable C++: baseline x86-64, ARM64 and all other processors.
#define ARBOOST_ISA baseline
#include "isa/variant.h"
