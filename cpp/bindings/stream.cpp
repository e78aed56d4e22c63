// Bindings of tables that come in batches: sketch, plan, parts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "bin/codes/encode.h"
#include "bin/stream/parts.h"
#include "bin/stream/table_sketch.h"
#include "bindings/common.h"
#include "table/columns.h"

namespace arboost::bindings {
namespace {

using Index = std::optional<Vector<RowId>>;

Rows rows_of(const Columns& table, const Index& rows) {
  if (!rows) return Rows(table.n_rows, nullptr);
  const RowId* index = rows->data();
  require(rows->size() == 0 || *std::max_element(index, index + rows->size()) < table.n_rows,
          "A row index lies beyond the table.");
  return Rows(rows->size(), index);
}

Edges spans_of(const Columns& table, const std::vector<Vector<double>>& edges) {
  require(edges.size() == table.columns.size(), "A batch needs the edges of every column.");
  Edges spans;
  for (const auto& column : edges) spans.emplace_back(column.data(), column.size());
  return spans;
}

void push(TableSketch& self, const Columns& table, const Index& rows, int n_threads) {
  nb::gil_scoped_release nogil;
  const Rows used = rows_of(table, rows);
  Team team(threads_for(used.size() * table.columns.size(), n_threads), python_poll());
  self.push(table, used, team);
}

std::vector<Owned<double>> edges(TableSketch& self, const std::optional<Vector<double>>& weights,
                                 const std::vector<bool>& is_level, int n_threads) {
  require(is_level.size() == self.n_columns(), "A sketch needs an entry for every column.");
  std::vector<std::vector<double>> found;
  {
    nb::gil_scoped_release nogil;
    std::span<const double> w;
    if (weights) w = {weights->data(), weights->size()};
    require(!weights || w.size() == self.n_rows(), "A sketch needs one weight for each row.");
    Team team(threads_for(self.places().size() * self.n_columns(), n_threads), python_poll());
    found = self.edges(w, {is_level.begin(), is_level.end()}, team);
  }
  std::vector<Owned<double>> result;
  for (auto& column : found) result.push_back(to_numpy(std::move(column)));
  return result;
}

StoragePlan bound_plan(const Columns& sample, std::size_t n_rows,
                       const std::vector<bool>& has_missing,
                       const std::vector<Vector<double>>& edges, int n_threads,
                       const std::vector<bool>& categorical, bool bundling) {
  const Edges spans = spans_of(sample, edges);
  require(has_missing.size() == edges.size() && categorical.size() == edges.size(),
          "A plan needs an entry of `has_missing` and `categorical` for every column.");
  nb::gil_scoped_release nogil;
  Team team(threads_for(sample.n_rows * sample.columns.size(), n_threads), python_poll());
  return plan_sample(sample, n_rows, {has_missing.begin(), has_missing.end()}, spans,
                     {{categorical.begin(), categorical.end()}, bundling, 0.0}, team);
}

// (codes or None, the plan that the part fits)
std::pair<std::optional<Codes>, StoragePlan> bound_encode(const Columns& table, const Index& rows,
                                                          const std::vector<Vector<double>>& edges,
                                                          int n_threads,
                                                          const std::vector<bool>& categorical,
                                                          const StoragePlan& plan, bool rows_only,
                                                          Codes* spent) {
  const Edges spans = spans_of(table, edges);
  nb::gil_scoped_release nogil;
  const Rows used = rows_of(table, rows);
  Team team(threads_for(used.size() * table.columns.size(), n_threads), python_poll());
  StoragePlan changed = plan;
  auto codes = encode_part(table, used, spans, {categorical.begin(), categorical.end()}, changed,
                           team, {rows_only, spent});
  return {std::move(codes), std::move(changed)};
}

}  // namespace

void bind_stream(nb::module_& m) {
  using namespace nb::literals;
  constexpr auto own = nb::rv_policy::automatic;  // arrays that hold their owner
  nb::class_<TableSketch>(m, "TableSketch", "Edges of a table whose rows come in batches.")
      .def(
          "__init__",
          [](TableSketch* self, std::size_t n_columns, std::size_t max_bins) {
            require(max_bins >= 2 && max_bins <= 65535, "max_bins must be from 2 to 65535.");
            new (self) TableSketch(n_columns, max_bins);
          },
          "n_columns"_a, "max_bins"_a)
      .def("push", &push, "columns"_a, "rows"_a.noconvert().none(), "n_threads"_a,
           "Add the next rows, all of a batch or some.")
      .def(
          "replace_codes",
          [](TableSketch& self, std::size_t column, const Vector<double>& codes) {
            require(column < self.n_columns(), "A column beyond the table.");
            self.replace_codes(column, {codes.data(), codes.size()});
          },
          "column"_a, "codes"_a.noconvert(), "Replace the level codes of a column.")
      .def("edges", &edges, "weights"_a.noconvert().none(), "is_level"_a, "n_threads"_a,
           "Edges of every column of numbers, the same as those of `quantiles`.")
      .def("sample", &TableSketch::sample, "The sampled rows as a table.")
      .def_prop_ro("n_rows", &TableSketch::n_rows)
      .def_prop_ro(
          "places", [](TableSketch& self) { return to_numpy(self.places()); }, own,
          "Positions of the sampled rows among all rows.")
      .def_prop_ro("has_missing", [](const TableSketch& self) {
        const auto missing = self.has_missing();
        return std::vector<bool>(missing.begin(), missing.end());
      });
  m.def("plan_sample", &bound_plan, "sample"_a, "n_rows"_a, "has_missing"_a, "edges"_a,
        "n_threads"_a, "categorical"_a, "bundling"_a,
        "Plan for storing the codes of a table, by a sample of its rows.");
  m.def("encode_part", &bound_encode, "columns"_a, "rows"_a.noconvert().none(), "edges"_a,
        "n_threads"_a, "categorical"_a, "plan"_a, "rows_only"_a = false,
        "spent"_a.none() = nb::none(),
        "(codes of a part of a table, or None where it does not fit the plan; a plan that fits). "
        "`rows_only`: without column-major codes, for a file. `spent`: codes whose memory is used "
        "again, and that must not be used any longer.");
  nb::class_<CodesParts>(m, "CodesParts", "Codes in memory, put together of parts.")
      .def(nb::init<std::size_t>(), "n_rows"_a)
      .def(
          "append",
          [](CodesParts& self, const Codes& part, int n_threads) {
            nb::gil_scoped_release nogil;
            Team team(threads_for(part.n_rows * part.n_features, n_threads), python_poll());
            self.append(part, team);
          },
          "codes"_a, "n_threads"_a, "Add the codes of the next rows.")
      .def("finish", &CodesParts::finish, "The codes of all rows.");
}

}  // namespace arboost::bindings
