// Bindings of Arrow streams -> Columns.
#include "table/arrow.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/common.h"

namespace arboost::bindings {
namespace {

// (columns or None where some are unsupported, fields, a table or not)
using ArrowAnswer = std::tuple<std::optional<Columns>, std::vector<ArrowColumn>, bool>;

ArrowAnswer from_arrow(const nb::capsule& capsule) {
  auto* stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  if (stream == nullptr) throw nb::python_error();
  ArrowImport import = import_arrow(
      *stream, [](const char* text) { return PyOS_string_to_double(text, nullptr, nullptr); });
  std::optional<Columns> columns;
  if (import.is_complete) columns = std::move(import.table);
  return {std::move(columns), std::move(import.columns), import.is_table};
}

nb::list orders_of(const ArrowColumn& column) {
  nb::list orders;
  for (const auto& order : column.text_orders) {
    nb::list entries;
    for (const std::string& text : order) entries.append(nb::bytes(text.data(), text.size()));
    orders.append(nb::tuple(entries));
  }
  for (const auto& order : column.number_orders) {
    nb::list entries;
    for (const double number : order) entries.append(nb::float_(number));
    orders.append(nb::tuple(entries));
  }
  return orders;
}

}  // namespace

void bind_arrow(nb::module_& m) {
  nb::class_<ArrowColumn>(m, "ArrowColumn", "Type and values of a column of an Arrow stream.")
      .def_ro("name", &ArrowColumn::name)
      .def_ro("format", &ArrowColumn::format)
      .def_ro("text", &ArrowColumn::text)
      .def_ro("is_inexact", &ArrowColumn::is_inexact)
      .def_prop_ro("unit", [](const ArrowColumn& column) { return column.type.unit; })
      .def_prop_ro("is_text",
                   [](const ArrowColumn& column) { return column.type.kind == ArrowKind::text; })
      .def_prop_ro(
          "is_supported",
          [](const ArrowColumn& column) { return column.type.kind != ArrowKind::unsupported; })
      .def_prop_ro("is_dictionary",
                   [](const ArrowColumn& column) { return column.index != Type::null; })
      .def_prop_ro("orders", &orders_of,
                   "Entries of each dictionary whose entries ascend: bytes, or numbers.");

  m.def("columns_of_arrow", &from_arrow, "stream"_a,
        "(columns or None where some are unsupported, what each is, whether the stream was a table "
        "and not a single column).");
}

}  // namespace arboost::bindings
