// Names of the split criteria.
#pragma once

#include <iterator>  // size
#include <stdexcept>
#include <string>

#include "grow/search/gain.h"

namespace arboost::bindings {

inline constexpr const char* criterion_names[] = {"quadratic",      "entropy", "poisson",
                                                  "absolute_error", "error",   "gain_ratio"};

inline const char* name_of(Criterion criterion) {
  return criterion_names[static_cast<std::size_t>(criterion)];
}

inline Criterion criterion_of(const std::string& name) {
  for (std::size_t i = 0; i < std::size(criterion_names); ++i)
    if (name == criterion_names[i]) return static_cast<Criterion>(i);
  throw std::invalid_argument("criterion is \"" + name + "\", but must be one of \"quadratic\", " +
                              "\"entropy\", \"poisson\", \"absolute_error\", \"error\" and " +
                              "\"gain_ratio\"");
}

}  // namespace arboost::bindings
