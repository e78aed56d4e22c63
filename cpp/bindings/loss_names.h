// Losses by their names in Python (bindings/loss.cpp).
#pragma once

#include <string>

#include "loss/losses.h"

namespace arboost::bindings {

// Throws std::invalid_argument for an unknown name.
Loss loss_named(const std::string& name);

}  // namespace arboost::bindings
