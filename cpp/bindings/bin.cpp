// Bindings of binning: quantiles, encode, Codes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../bin/encode.h"
#include "../bin/quantiles.h"
#include "../bin/take.h"
#include "../table.h"
#include "common.h"

namespace arboost::bindings {
namespace {

using Index = nb::ndarray<const RowId, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Rows rows_of(const Columns& table, const std::optional<Index>& rows) {
  if (!rows) return Rows(table.n_rows, nullptr);
  const RowId* index = rows->data();
  const std::size_t n = rows->size();
  if (n > 0 && *std::max_element(index, index + n) >= table.n_rows)
    throw std::invalid_argument("A row index lies beyond the table.");
  return Rows(n, index);
}

std::vector<Owned<double>> bound_quantiles(const Columns& table, const std::optional<Index>& rows,
                                           const std::optional<Doubles>& weights,
                                           std::size_t max_bins, int n_threads) {
  if (max_bins < 2 || max_bins > 65535)
    throw std::invalid_argument("max_bins must be from 2 to 65535.");
  std::vector<std::vector<double>> edges;
  {
    nb::gil_scoped_release nogil;
    const Rows used = rows_of(table, rows);
    std::span<const double> w;
    if (weights) w = {weights->data(), weights->size()};
    if (weights && w.size() != used.size())
      throw std::invalid_argument("Quantiles need one weight for each row that is used.");
    Team team(threads_for(used.size() * table.columns.size(), n_threads), python_poll());
    edges = quantiles(table, used, w, max_bins, team);
  }
  std::vector<Owned<double>> result;
  for (auto& column : edges) result.push_back(to_numpy(std::move(column)));
  return result;
}

Codes bound_encode(const Columns& table, const std::optional<Index>& rows,
                   const std::vector<Doubles>& edges, int n_threads,
                   const std::vector<bool>& categorical) {
  if (edges.size() != table.columns.size())
    throw std::invalid_argument("encode needs the edges of every column.");
  std::vector<std::span<const double>> spans;
  for (const Doubles& column : edges) spans.emplace_back(column.data(), column.size());
  const bool fit = std::all_of(spans.begin(), spans.end(), [](auto column) {
    const auto wrong = [](double a, double b) { return !(a < b); };
    return column.size() < 0xfffffffe &&
           std::adjacent_find(column.begin(), column.end(), wrong) == column.end();
  });
  if (!fit) throw std::invalid_argument("Edges must ascend.");
  nb::gil_scoped_release nogil;
  const Rows used = rows_of(table, rows);
  Team team(threads_for(used.size() * table.columns.size(), n_threads), python_poll());
  return encode(table, used, spans, {categorical.begin(), categorical.end()}, team);
}

Codes bound_take(const Codes& codes, const Index& rows, int n_threads) {
  if (codes.width == 4) throw std::invalid_argument("Ranks are not copied.");
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows.data()[i] >= codes.n_rows) throw std::invalid_argument("A row outside the table.");
  nb::gil_scoped_release nogil;
  Team team(threads_for(rows.size() * codes.n_features, n_threads), python_poll());
  return take_rows(codes, {rows.size(), nullptr, rows.data()}, team);
}

using View = nb::ndarray<nb::numpy, nb::ro, nb::ndim<2>>;

// Read-only view of one of the two tables as an array of shape (n_rows, n_features).
View view_of(nb::handle self, bool by_row) {
  const auto& codes = nb::cast<const Codes&>(self);
  by_row = by_row && codes.width < 4;  // ranks are kept by column only
  const auto width = static_cast<std::size_t>(codes.width);
  const std::size_t shape[2] = {codes.n_rows, codes.n_features};
  const auto row_step = static_cast<std::int64_t>(by_row ? codes.row_stride / width : 1);
  const auto column_step = static_cast<std::int64_t>(by_row ? 1 : codes.n_rows);
  const std::int64_t strides[2] = {row_step, column_step};
  const auto dtype = width == 1   ? nb::dtype<std::uint8_t>()
                     : width == 2 ? nb::dtype<std::uint16_t>()
                                  : nb::dtype<std::uint32_t>();
  const auto* data = by_row ? codes.by_row.data() : codes.by_column.data();
  return View(data, 2, shape, self, strides, dtype);
}

}  // namespace

void bind_bin(nb::module_& m) {
  using namespace nb::literals;

  constexpr auto own = nb::rv_policy::automatic;  // arrays that know what keeps them alive
  nb::class_<Codes>(m, "Codes", "A binned table.")
      .def_prop_ro("n_rows", [](const Codes& codes) { return codes.n_rows; })
      .def_prop_ro("n_features", [](const Codes& codes) { return codes.n_features; })
      .def_prop_ro("width", [](const Codes& codes) { return codes.width; })
      .def_prop_ro(
          "n_bins", [](const Codes& codes) { return to_numpy(codes.n_bins); }, own)
      .def_prop_ro(
          "has_missing", [](const Codes& codes) { return to_numpy(codes.has_missing); }, own)
      .def_prop_ro(
          "is_category", [](const Codes& codes) { return to_numpy(codes.is_category); }, own,
          "1 for features whose codes are levels; empty where there are none.")
      .def_prop_ro(
          "first_slot", [](const Codes& codes) { return to_numpy(codes.first_slot); }, own)
      .def_prop_ro(
          "by_row", [](nb::handle self) { return view_of(self, true); }, own)
      .def_prop_ro(
          "by_column", [](nb::handle self) { return view_of(self, false); }, own)
      .def("take", &bound_take, "rows"_a.noconvert(), "n_threads"_a,
           "Some rows as a table of their own; not of ranks.")
      .def(
          "to_numpy",
          [](nb::handle self) {
            const bool wide = nb::cast<const Codes&>(self).width == 4;
            return nb::cast(view_of(self, true)).attr("astype")(wide ? "uint32" : "uint16");
          },
          nb::sig("def to_numpy(self) -> numpy.typing.NDArray[numpy.unsignedinteger]"),
          "Copy of the codes as uint16 (ranks: uint32), one row of the array for each row of the "
          "table.");

  m.def("quantiles", &bound_quantiles, "columns"_a, "rows"_a.noconvert().none(),
        "weights"_a.noconvert().none(), "max_bins"_a, "n_threads"_a,
        "Edges of every column, ascending; weights belong to the rows that are used.");
  m.def("encode", &bound_encode, "columns"_a, "rows"_a.noconvert().none(), "edges"_a, "n_threads"_a,
        "categorical"_a = std::vector<bool>(),
        "Codes of every value: the number of edges strictly below it. Values of columns that are "
        "categorical are codes of levels already, with the edges 0.5, 1.5, ...");
}

}  // namespace arboost::bindings
