// Bindings of target encoding and of class labels.
#include "bin/statistics.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <stdexcept>

#include "bindings/common.h"
#include "table/labels.h"

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

template <class Call>
OfRowsAndLevels returned(Call call) {
  Statistics statistics = without_gil(call);
  return {to_numpy(std::move(statistics.of_rows)), to_numpy(std::move(statistics.of_levels))};
}

OfRowsAndLevels bound_statistics(const Vector<std::int32_t>& codes, std::size_t n_levels,
                                 const Vector<double>& target, const Weights& weight) {
  const LevelRows rows = checked_rows(codes, n_levels, target, weight);
  return returned([&] { return level_statistics(rows); });
}

OfRowsAndLevels bound_means(const Vector<std::int32_t>& codes, std::size_t n_levels,
                            const Vector<double>& target, const Weights& weight, double smoothing) {
  const LevelRows rows = checked_rows(codes, n_levels, target, weight);
  require(smoothing > 0, "a smoothing of 0 or less");
  return returned([&] { return ordered_means(rows, smoothing); });
}

Owned<double> bound_scores(const Vector<std::int32_t>& codes, std::size_t n_levels,
                           const Vector<double>& target, const Weights& weight,
                           std::size_t n_classes) {
  const LevelRows rows = checked_rows(codes, n_levels, target, weight);
  for (std::size_t i = 0; i < rows.target.size(); ++i)
    if (!(rows.target[i] >= 0 && rows.target[i] < static_cast<double>(n_classes)))
      throw std::invalid_argument("a target that is no class");
  return to_numpy(without_gil([&] { return class_scores(rows, n_classes); }));
}

template <class Label>
void bind_label(nb::module_& m) {
  using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  m.def(
      "index_labels",
      [](const Vector<Label>& given, double widest, Out out, int n_threads) -> nb::object {
        const std::span<const Label> all(given.data(), given.size());
        require(!all.empty() && out.size() == all.size(), "as many indices as labels");
        auto labels = with_team(all.size(), n_threads, [&](Team& team) {
          return index_labels(all, widest, team, out.data());
        });
        if (!labels) return nb::none();
        return nb::cast(to_numpy(std::move(*labels)));
      },
      "labels"_a.noconvert(), "widest"_a, "out"_a.noconvert(), "n_threads"_a,
      "Distinct labels, ascending; the index of each row's label among them goes to out. None "
      "where labels are not whole numbers, or a distance of `widest` or more apart.");
}
template <class... Labels>
void bind_labels(nb::module_& m) {
  (bind_label<Labels>(m), ...);
}

}  // namespace

void bind_statistics(nb::module_& m) {
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
  m.def(
      "class_counts",
      [](const Vector<double>& codes, std::size_t n_classes, int n_threads) {
        return to_numpy(with_team(codes.size(), n_threads, [&](Team& team) {
          return class_counts(span_of(codes), n_classes, team);
        }));
      },
      "codes"_a.noconvert(), "n_classes"_a, "n_threads"_a, "Number of rows of each class.");
  bind_labels<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
              std::uint32_t, std::uint64_t, float, double>(m);
}

}  // namespace arboost::bindings
