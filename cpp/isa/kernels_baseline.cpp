// The kernels in portable C++: the lowest x86-64, ARM64 and everything else.
#define ARBOOST_ISA baseline
#include "isa/variant.h"
