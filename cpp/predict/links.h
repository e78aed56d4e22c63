// Raw scores -> answers: what a link makes of the sum of the trees. The same bits on every machine.
#pragma once

#include <cstddef>
#include <string_view>

namespace arboost {

enum class Link { identity, exp, logistic, logistic_of_double, softmax, share_of_two, shares };

// Throws std::invalid_argument for other names.
Link link_of(std::string_view name);

// Numbers of an answer. Throws std::invalid_argument where the link takes another number of scores.
std::size_t answer_width(Link link, std::size_t n_outputs);

// answers[row][...] from raw[row][output].
void apply_link(Link link, const double* raw, std::size_t n_rows, std::size_t n_outputs,
                double* answers);

}  // namespace arboost
