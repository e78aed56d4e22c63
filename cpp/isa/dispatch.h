// The kernels of all stages, compiled for one instruction set, and the choice among such variants.
//
// Each stage declares a table of its kernels (loss/loss_kernels.h, grow/kernels/grow_kernels.h,
// ...) and reaches it by a function that isa/dispatch.cpp defines: stages know nothing of variants.
#pragma once

#include "explain/shap/shap_run.h"
#include "grow/kernels/grow_kernels.h"
#include "loss/loss_kernels.h"
#include "predict/bits/bit_trees.h"
#include "reweight/reweight_kernels.h"

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
