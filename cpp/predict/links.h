// Links: raw scores -> predictions on the scale of the target. The same bits on every machine.
#pragma once

#include <cstddef>
#include <string_view>

#include "predict/link_parts.h"

namespace arboost {

// Throws std::invalid_argument for other names.
Link link_of(std::string_view name);

// Number of output columns. Throws std::invalid_argument if the link does not accept this number of
// scores.
std::size_t answer_width(Link link, std::size_t n_outputs);

// answers[row][...] from raw[row][output].
void apply_link(Link link, const double* raw, std::size_t n_rows, std::size_t n_outputs,
                double* answers);

}  // namespace arboost
