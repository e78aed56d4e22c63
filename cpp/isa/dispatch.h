// Kernels of all stages for one instruction set (a variant), and the choice of a variant.
//
// Each stage declares a table of its kernels (loss/loss_kernels.h, grow/kernels/grow_kernels.h,
// ...) and an accessor, which isa/dispatch.cpp defines: stages do not depend on variants.
#pragma once

#include "explain/shap/shap_run.h"
#include "grow/kernels/grow_kernels.h"
#include "loss/loss_kernels.h"
#include "predict/bits/bit_trees.h"
#include "reweight/reweight.h"

namespace arboost {

struct Variant {
  const char* name;
  LossKernels loss;
  GrowKernels grow;
  ReweightKernels reweight;
  BitKernels bits;
  ShapKernels shap;
};

// The variant for this CPU, chosen when the library first runs.
const Variant& variant();

}  // namespace arboost
