// Binding of the random bits: Python and the core draw from the same hash.
#include "base/random.h"

#include <stdexcept>
#include <string>

#include "bindings/common.h"

namespace arboost::bindings {
namespace {

Purpose purpose_named(const std::string& name) {
  if (name == "bag") return Purpose::bag;
  if (name == "dropout") return Purpose::dropout;
  if (name == "relevance_noise") return Purpose::relevance_noise;
  if (name == "tied_rows") return Purpose::tied_rows;
  if (name == "validation") return Purpose::validation;
  throw std::invalid_argument("unknown purpose '" + name + "'");
}

Owned<std::uint64_t> hashes(const std::string& purpose, std::uint64_t seed, std::uint64_t round,
                            std::size_t count) {
  const Purpose which = purpose_named(purpose);
  std::vector<std::uint64_t> bits(count);
  for (std::size_t i = 0; i < count; ++i) bits[i] = counter_hash(seed, which, round, i);
  return to_numpy(std::move(bits));
}

}  // namespace

void bind_random(nb::module_& m) {
  m.def("counter_hash", &hashes, "purpose"_a, "seed"_a, "round"_a, "count"_a,
        "64 random bits for each index below `count`.");
}

}  // namespace arboost::bindings
