// Tables of all kernels for one instruction set. Included once for each, with its name in
// ARBOOST_ISA: all kernels are in a namespace of that name, so that the linker cannot merge code of
// different variants.
#pragma once

#include "explain/shap/shap_kernel.h"
#include "grow/kernels/accumulate.h"
#include "grow/kernels/draw.h"
#include "grow/kernels/partition.h"
#include "grow/kernels/quantise.h"
#include "grow/kernels/walk.h"
#include "grow/search/category.h"
#include "grow/search/few.h"
#include "grow/search/few_cuts.h"
#include "grow/search/fold.h"
#include "grow/search/logarithms.h"
#include "grow/search/rough.h"
#include "grow/search/scan.h"
#include "grow/search/small.h"
#include "grow/search/split.h"
#include "isa/dispatch.h"
#include "loss/gradients.h"
#include "loss/rank_pairs.h"
#include "loss/value.h"
#include "predict/bits/bit_lookup.h"
#include "predict/bits/bit_walk.h"
#include "reweight/votes.h"

#define ARBOOST_TEXT_OF(x) #x
#define ARBOOST_TEXT(x) ARBOOST_TEXT_OF(x)

namespace arboost::ARBOOST_ISA {

extern const Variant variant;
const Variant variant = {
    .name = ARBOOST_TEXT(ARBOOST_ISA),
    .loss =
        {
            .gradients = gradients,
            .loss_value = loss_value,
            .weighted_sum = weighted_sum,
            .exponentials = exponentials,
            .logarithm = log_of,
            .rank_pairs = rank_pairs,
        },
    .grow =
        {
            .accumulate = accumulate,
            .partition = partition,
            .find_split = find_split,
            .find_split_small = find_split_small,
            .find_split_few = find_split_few,
            .find_cut_few = find_cut_few,
            .find_split_listed = find_split_listed,
            .find_candidate = find_candidate,
            .find_split_sorted = find_split_sorted,
            .rank_features = rank_features,
            .draw_few = draw_few,
            .nth_of_few = nth_of_few,
            .quantise_narrow = quantise_narrow,
            .read_narrow = read_narrow,
            .gradient_norms = gradient_norms,
            .draw = draw,
            .draw_top = draw_top,
            .walk = walk,
            .fold = fold,
            .add = add,
            .subtract = subtract,
        },
    .reweight = {.vote = vote, .weigh = weigh},
    .bits = bits_table,
    .shap = {.shap = shap},
};

#if defined(ARBOOST_LOOKUP)
extern const BitKernels bit_lookups;
const BitKernels bit_lookups = lookup_table;
#endif

}  // namespace arboost::ARBOOST_ISA
