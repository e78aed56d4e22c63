// Bindings of target encoding.
#include "bin/statistics.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <stdexcept>

#include "bindings/common.h"

namespace arboost::bindings {
namespace {

using Weights = std::optional<Vector<double>>;

// Negative codes mean no level: as unsigned numbers they are above all others.
LevelRows checked_rows(const Vector<std::int32_t>& codes, std::size_t n_levels,
                       const Vector<double>& target, const Weights& weight) {
  const std::size_t n = codes.shape(0);
  if (target.shape(0) != n || (weight && weight->shape(0) != n))
    throw std::invalid_argument("codes, target and weights of different lengths");
  for (std::size_t i = 0; i < n; ++i)
    if (codes.data()[i] < -1 || codes.data()[i] >= static_cast<std::int64_t>(n_levels))
      throw std::invalid_argument("a code of no level");
  return {{reinterpret_cast<const std::uint32_t*>(codes.data()), n},
          n_levels,
          {target.data(), n},
          weight ? weight->data() : nullptr};
}

using OfRowsAndLevels = std::pair<Owned<double>, Owned<double>>;

OfRowsAndLevels returned(Statistics found) {
  return {to_numpy(std::move(found.of_rows)), to_numpy(std::move(found.of_levels))};
}

OfRowsAndLevels bound_statistics(const Vector<std::int32_t>& codes, std::size_t n_levels,
                                 const Vector<double>& target, const Weights& weight) {
  const LevelRows rows = checked_rows(codes, n_levels, target, weight);
  Statistics found;
  {
    nb::gil_scoped_release release;
    found = level_statistics(rows);
  }
  return returned(std::move(found));
}

OfRowsAndLevels bound_means(const Vector<std::int32_t>& codes, std::size_t n_levels,
                            const Vector<double>& target, const Weights& weight, double smoothing) {
  const LevelRows rows = checked_rows(codes, n_levels, target, weight);
  require(smoothing > 0, "a smoothing of 0 or less");
  Statistics found;
  {
    nb::gil_scoped_release release;
    found = ordered_means(rows, smoothing);
  }
  return returned(std::move(found));
}

Owned<double> bound_scores(const Vector<std::int32_t>& codes, std::size_t n_levels,
                           const Vector<double>& target, const Weights& weight,
                           std::size_t n_classes) {
  const LevelRows rows = checked_rows(codes, n_levels, target, weight);
  for (std::size_t i = 0; i < rows.target.size(); ++i)
    if (!(rows.target[i] >= 0 && rows.target[i] < static_cast<double>(n_classes)))
      throw std::invalid_argument("a target that is no class");
  std::vector<double> scores;
  {
    nb::gil_scoped_release release;
    scores = class_scores(rows, n_classes);
  }
  return to_numpy(std::move(scores));
}

}  // namespace

void bind_statistics(nb::module_& m) {
  using namespace nb::literals;
  m.def("level_statistics", &bound_statistics, "codes"_a, "n_levels"_a, "target"_a,
        "weight"_a.none(),
        "(number of each row, number of each level): smoothed means of the target; codes of -1 are "
        "missing.");
  m.def("ordered_means", &bound_means, "codes"_a, "n_levels"_a, "target"_a, "weight"_a.none(),
        "smoothing"_a,
        "(ordered mean of each row, mean of each level) of the target, smoothed; codes of -1 are "
        "missing.");
  m.def("class_scores", &bound_scores, "codes"_a, "n_levels"_a, "target"_a, "weight"_a.none(),
        "n_classes"_a, "Numbers for classes whose means differ most between levels.");
}

}  // namespace arboost::bindings
