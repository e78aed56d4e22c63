// Losses by their names in Python, and checked rows for them (bindings/loss.cpp).
#pragma once

#include "bindings/common.h"
#include "loss/loss_args.h"

namespace arboost::bindings {

using Weights = std::optional<Vector<double>>;
using GivenScores = Array<double, nb::ndim<2>>;

// Throws std::invalid_argument for an unknown name.
Loss loss_named(const std::string& name);

void check_length(std::size_t given, std::size_t wanted, const char* what);
LossRows loss_rows(const Vector<double>& y, const Weights& weight,
                   const std::optional<GivenScores>& scores, std::size_t n_rows);

}  // namespace arboost::bindings
