// Bindings of tables that come in batches: sketch, plan, parts in memory and in files.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <numeric>
#include <system_error>

#include "bin/codes/encode.h"
#include "bin/stream/parts.h"
#include "bin/stream/table_sketch.h"
#include "bindings/common.h"
#include "table/codes_file.h"
#include "table/columns.h"

namespace arboost::bindings {
namespace {

using Index = std::optional<Vector<RowId>>;

Edges edges_of(const Columns& table, const std::vector<Vector<double>>& edges) {
  require(edges.size() == table.columns.size(), "A batch needs the edges of every column.");
  return spans_of(edges);
}

void push(TableSketch& self, const Columns& table, const Index& rows, int n_threads) {
  with_rows(table, rows, n_threads,
            [&](const Rows& used, Team& team) { self.push(table, used, team); });
}

std::vector<Owned<double>> edges(TableSketch& self, const std::optional<Vector<double>>& weights,
                                 const std::vector<bool>& is_level, int n_threads) {
  require(is_level.size() == self.n_columns(), "A sketch needs an entry for every column.");
  require(!weights || weights->size() == self.n_rows(), "A sketch needs one weight for each row.");
  const std::size_t cells = self.places().size() * self.n_columns();
  return each_to_numpy(with_team(cells, n_threads, [&](Team& team) {
    return self.edges(span_of(weights), {is_level.begin(), is_level.end()}, team);
  }));
}

// Sampled values, of the type that holds them all.
nb::object values(TableSketch& self, std::size_t column) {
  require(column < self.n_columns(), "A column beyond the table.");
  nb::object array;
  self.visit_values(column,
                    [&](const auto& column_values) { array = nb::cast(to_numpy(column_values)); });
  return array;
}

std::optional<Owned<double>> distinct(const TableSketch& self, std::size_t column) {
  require(column < self.n_columns(), "A column beyond the table.");
  Distinct distinct_values = self.distinct(column);
  if (!distinct_values) return std::nullopt;
  return to_numpy(std::move(*distinct_values));
}

std::vector<Owned<double>> bound_sketch_edges(
    const Columns& sample, const Vector<std::uint32_t>& places, std::size_t n_rows,
    const std::optional<Vector<double>>& weights,
    const std::vector<std::optional<Vector<double>>>& distinct, std::size_t max_bins,
    int n_threads) {
  require(distinct.size() == sample.columns.size(), "A sample needs an entry for every column.");
  require(places.size() == sample.n_rows, "A sample needs a place for every row.");
  require(!weights || weights->size() == n_rows, "A sketch needs one weight for each row.");
  require(places.size() == 0 ||
              *std::max_element(places.data(), places.data() + places.size()) < n_rows,
          "A place lies beyond the rows.");
  const std::size_t cells = sample.n_rows * sample.columns.size();
  return each_to_numpy(with_team(cells, n_threads, [&](Team& team) {
    std::vector<Distinct> values;
    for (const auto& column_values : distinct) {
      values.emplace_back();
      if (column_values)
        values.back().emplace(column_values->data(), column_values->data() + column_values->size());
    }
    return sketch_edges(sample, span_of(places), n_rows, span_of(weights), values, max_bins, team);
  }));
}

std::vector<std::uint32_t> bound_shareable(const std::vector<Vector<double>>& edges,
                                           std::size_t n_rows, bool bundling) {
  Columns dense;
  dense.columns.resize(edges.size());
  return shareable(dense, spans_of(edges), {{}, bundling, 0.0}, n_rows);
}

Owned<RowId> bound_plan_rows(std::size_t n_rows, int n_threads) {
  return to_numpy(with_team(n_rows, n_threads, [&](Team& team) {
    return choose_plan_rows(Rows(n_rows, nullptr), team);
  }));
}

StoragePlan bound_plan(const Columns& sample, std::size_t n_rows,
                       const std::vector<bool>& has_missing,
                       const std::vector<Vector<double>>& edges, int n_threads,
                       const std::vector<bool>& categorical, bool bundling, bool is_chosen) {
  const Edges spans = edges_of(sample, edges);
  require(has_missing.size() == edges.size() && categorical.size() == edges.size(),
          "A plan needs an entry of `has_missing` and `categorical` for every column.");
  CallTeam team(sample.n_rows * sample.columns.size(), n_threads);
  std::vector<RowId> rows(is_chosen ? sample.n_rows : 0);
  std::iota(rows.begin(), rows.end(), RowId{0});
  if (!is_chosen) rows = choose_plan_rows(Rows(sample.n_rows, nullptr), team);
  return plan_sample(sample, rows, n_rows, {has_missing.begin(), has_missing.end()}, spans,
                     {{categorical.begin(), categorical.end()}, bundling, 0.0}, team);
}

// (codes or None, the plan that the part fits)
std::pair<std::optional<Codes>, StoragePlan> bound_encode(const Columns& table, const Index& rows,
                                                          const std::vector<Vector<double>>& edges,
                                                          int n_threads,
                                                          const std::vector<bool>& categorical,
                                                          const StoragePlan& plan, bool rows_only,
                                                          Codes* spent) {
  const Edges spans = edges_of(table, edges);
  StoragePlan changed = plan;
  auto codes = with_rows(table, rows, n_threads, [&](const Rows& used, Team& team) {
    return encode_part(table, used, spans, {categorical.begin(), categorical.end()}, changed, team,
                       {rows_only, spent});
  });
  return {std::move(codes), std::move(changed)};
}

// Errors of the system are OSError, with their numbers.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::system_error& error) {
    PyObject* arguments = Py_BuildValue("(is)", error.code().value(), error.what());
    if (arguments == nullptr) return;
    PyErr_SetObject(PyExc_OSError, arguments);
    Py_DECREF(arguments);
  }
}

Codes bound_open(int descriptor, int n_threads) {
  GilRelease nogil;
  Team team(n_threads == 0 ? available_threads() : n_threads, poll_python);
  return open_codes(descriptor, team);
}

}  // namespace

void bind_stream(nb::module_& m) {
  nb::class_<TableSketch>(m, "TableSketch", "Edges of a table whose rows come in batches.")
      .def(
          "__init__",
          [](TableSketch* self, std::size_t n_columns, std::size_t max_bins,
             const std::optional<TableSketch::Share>& share) {
            require(max_bins >= 2 && max_bins <= 65535, "max_bins must be from 2 to 65535.");
            new (self) TableSketch(n_columns, max_bins, share);
          },
          "n_columns"_a, "max_bins"_a, "share"_a.none() = nb::none(),
          "`share`: position of the first row among all rows, and their number, where these are "
          "rows of one worker.")
      .def("push", &push, "columns"_a, "rows"_a.noconvert().none(), "n_threads"_a,
           "Add the next rows, all of a batch or some.")
      .def(
          "replace_codes",
          [](TableSketch& self, std::size_t column, const Vector<double>& codes) {
            require(column < self.n_columns(), "A column beyond the table.");
            self.replace_codes(column, {codes.data(), codes.size()});
          },
          "column"_a, "codes"_a.noconvert(), "Replace the level codes of a column.")
      .def(
          "add_column",
          [](TableSketch& self, const Vector<float>& derived, std::size_t source) {
            require(source < self.n_columns(), "A column beyond the table.");
            self.add_column({derived.data(), derived.size()}, source);
          },
          "values"_a.noconvert(), "source"_a,
          "Append a column that is derived from another one: its values in the sampled rows.")
      .def("edges", &edges, "weights"_a.noconvert().none(), "is_level"_a, "n_threads"_a,
           "Edges of every column of numbers, the same as those of `quantiles`.")
      .def("sample", &TableSketch::sample, "The sampled rows as a table.")
      .def("values", &values, "column"_a,
           nb::sig("def values(self, column: int) -> numpy.typing.NDArray[numpy.floating]"),
           "Sampled values of a column: float32, or float64 where that does not hold them.")
      .def("distinct", &distinct, "column"_a,
           "Distinct values of a column, ascending; None where they are more than max_bins.")
      .def_prop_ro("n_rows", &TableSketch::n_rows)
      .def_prop_ro(
          "places", [](TableSketch& self) { return to_numpy(self.places()); }, by_owner,
          "Positions of the sampled rows among all rows.")
      .def_prop_ro("has_missing", [](const TableSketch& self) {
        const auto missing = self.has_missing();
        return std::vector<bool>(missing.begin(), missing.end());
      });
  m.def("plan_sample", &bound_plan, "sample"_a, "n_rows"_a, "has_missing"_a, "edges"_a,
        "n_threads"_a, "categorical"_a, "bundling"_a, "is_chosen"_a = false,
        "Plan for storing the codes of a table, by a sample of its rows. `is_chosen`: the sample "
        "has the rows of `plan_rows` alone.");
  m.def("plan_rows", &bound_plan_rows, "n_rows"_a, "n_threads"_a,
        "Rows of a sample that a plan is made from.");
  m.def("shareable", &bound_shareable, "edges"_a, "n_rows"_a, "bundling"_a,
        "Features that may share a stored column, the only ones whose values a plan depends on.");
  m.def(
      "join_plans",
      [](const StoragePlan& plan, const std::vector<StoragePlan>& changed) {
        return join_plans(plan, changed);
      },
      "plan"_a, "changed"_a, "Plan that fits all parts that have changed a plan.");
  m.def("sketch_edges", &bound_sketch_edges, "sample"_a, "places"_a.noconvert(), "n_rows"_a,
        "weights"_a.noconvert().none(), "distinct"_a, "max_bins"_a, "n_threads"_a,
        "Edges of columns of numbers by the sampled rows of all shares, their positions and the "
        "distinct values of each column, None where they are too many.");
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
            CallTeam team(part.n_rows * part.n_features, n_threads);
            self.append(part, team);
          },
          "codes"_a, "n_threads"_a, "Add the codes of the next rows.")
      .def("finish", &CodesParts::finish, "The codes of all rows.");

  nb::register_exception_translator(translate);
  nb::class_<CodesWriter>(m, "CodesWriter", "Writer of a binned table to a file, part by part.")
      .def(nb::init<int, std::size_t>(), "descriptor"_a, "window_rows"_a,
           "The file must be open for reading and writing; rows are read in windows later.")
      .def("append", &CodesWriter::append, "part"_a, nb::call_guard<GilRelease>(),
           "Append rows in memory, with the layout of the parts before.")
      .def("finish", &CodesWriter::finish, nb::call_guard<GilRelease>(),
           "Table of all parts, whose rows stay in the file.");
  m.def("open_codes", &bound_open, "descriptor"_a, "n_threads"_a = 0,
        "Table in a finished file; ValueError where the file is damaged.");
}

}  // namespace arboost::bindings
