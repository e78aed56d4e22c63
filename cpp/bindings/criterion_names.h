// Names of the split criteria.
#pragma once

#include "bindings/common.h"
#include "grow/search/gain.h"

namespace arboost::bindings {

inline constexpr const char* criterion_names[] = {"quadratic",      "entropy", "poisson",
                                                  "absolute_error", "error",   "gain_ratio"};

inline const char* name_of(Criterion criterion) {
  return criterion_names[static_cast<std::size_t>(criterion)];
}

inline Criterion criterion_of(const std::string& name) {
  return named<Criterion>(criterion_names, name,
                          "criterion is \"" + name + "\", but must be one of \"quadratic\", " +
                              "\"entropy\", \"poisson\", \"absolute_error\", \"error\" and " +
                              "\"gain_ratio\"");
}

}  // namespace arboost::bindings
