// Bindings of tables: arrays, sparse matrices, Arrow streams and arrays of a CUDA device ->
// columns.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "base/require.h"
#include "bin/device/device_columns.h"
#include "bindings/common.h"
#include "table/arrow.h"
#include "table/columns.h"
#include "table/csr.h"
#include "table/times.h"

namespace arboost::bindings {
namespace {

using Values = nb::ndarray<nb::ro, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::ndim<1>, nb::device::cpu>;
using Index = Vector<RowId>;

Type type_of(nb::dlpack::dtype dtype) {
  return arboost::bindings::type_of(kind_of(dtype), dtype.bits % 8 == 0 ? dtype.bits / 8 : 0);
}

void check_length(const Columns& table, std::size_t length, const char* what) {
  if (length == table.n_rows) return;
  throw std::invalid_argument(std::string(what) + " has " + std::to_string(length) +
                              " rows, but the table has " + std::to_string(table.n_rows) + ".");
}

Column make_column(const Values& values, std::size_t n_rows, std::size_t axis_offset) {
  const Type type = type_of(values.dtype());
  const auto size = static_cast<std::ptrdiff_t>(item_size(type));
  const std::ptrdiff_t across = n_rows > 0 && values.ndim() == 2 ? values.stride(1) * size : 0;
  return whole_column(type, values.stride(0) * size,
                      static_cast<const std::byte*>(values.data()) +
                          static_cast<std::ptrdiff_t>(axis_offset) * across,
                      n_rows);
}

void append(Columns& table, const Columns& more) {
  table.columns.insert(table.columns.end(), more.columns.begin(), more.columns.end());
  table.owners.insert(table.owners.end(), more.owners.begin(), more.owners.end());
}

void add(Columns& table, const Values& values, const std::optional<Mask>& mask) {
  require(values.ndim() == 1, "A column must have one dimension.");
  check_length(table, values.shape(0), "A column");
  Column column = make_column(values, table.n_rows, 0);
  if (mask) {
    check_length(table, mask->shape(0), "A mask");
    for (Piece& piece : column.pieces) {
      piece.mask = reinterpret_cast<const std::uint8_t*>(mask->data());
      piece.mask_stride = mask->stride(0);
    }
    table.owners.push_back(std::make_shared<Mask>(*mask));
  }
  table.owners.push_back(std::make_shared<Values>(values));
  table.columns.push_back(std::move(column));
}

void add_matrix(Columns& table, const Values& values) {
  require(values.ndim() == 2, "A matrix must have two dimensions.");
  check_length(table, values.shape(0), "A matrix");
  table.owners.push_back(std::make_shared<Values>(values));
  table.columns.reserve(table.columns.size() + values.shape(1));
  for (std::size_t c = 0; c < values.shape(1); ++c)
    table.columns.push_back(make_column(values, table.n_rows, c));
}

void check_rows(const Columns& table, const RowId* rows, std::size_t n) {
  const auto wrong = [](RowId a, RowId b) { return a >= b; };
  if (std::adjacent_find(rows, rows + n, wrong) != rows + n)
    throw std::invalid_argument(
        "The rows of a sparse column must ascend, each once. Call sum_duplicates() on the matrix.");
  if (n > 0 && rows[n - 1] >= table.n_rows)
    throw std::invalid_argument("A sparse column has a row beyond the table.");
}

void add_sparse(Columns& table, const Index& rows, const Values& values, double fill) {
  require(values.ndim() == 1, "A column must have one dimension.");
  require(values.shape(0) == rows.size(), "A sparse column needs as many rows as values.");
  check_row_count(table.n_rows);
  const RowId* first = rows.data();
  check_rows(table, first, rows.size());
  Column column = make_column(values, 0, 0);
  column.sparse = {first, static_cast<const std::byte*>(values.data()), rows.size(), fill};
  table.owners.push_back(std::make_shared<Index>(rows));
  table.owners.push_back(std::make_shared<Values>(values));
  table.columns.push_back(std::move(column));
}

// Columns of a whole matrix by columns: views of its arrays.
template <class Offset>
void add_csc(Columns& table, const Vector<Offset>& starts, const Index& rows, const Values& values,
             double fill) {
  check_row_count(table.n_rows);
  require(values.ndim() == 1 && values.shape(0) == rows.size(),
          "A sparse table needs as many rows as values.");
  if (starts.size() == 0 || starts.data()[0] != 0 ||
      static_cast<std::size_t>(starts.data()[starts.size() - 1]) != rows.size())
    throw std::invalid_argument("A sparse table's columns do not hold all of its values.");
  Column column = make_column(values, 0, 0);
  std::vector<Column> added(starts.size() - 1, column);
  for (std::size_t c = 0; c < added.size(); ++c) {
    const auto begin = static_cast<std::ptrdiff_t>(starts.data()[c]);
    const auto end = static_cast<std::ptrdiff_t>(starts.data()[c + 1]);
    if (begin > end || static_cast<std::size_t>(end) > rows.size())
      throw std::invalid_argument("A column of a sparse table ends before it begins.");
    const auto size = static_cast<std::size_t>(end - begin);
    check_rows(table, rows.data() + begin, size);
    added[c].sparse = {rows.data() + begin,
                       static_cast<const std::byte*>(values.data()) + begin * column.stride, size,
                       fill};
  }
  table.columns.insert(table.columns.end(), added.begin(), added.end());
  table.owners.push_back(std::make_shared<Index>(rows));
  table.owners.push_back(std::make_shared<Values>(values));
}

template <class Offset>
void add_csr(Columns& table, const Vector<Offset>& starts, const Vector<Offset>& indices,
             const Values& values, std::size_t n_columns, double fill) {
  check_row_count(table.n_rows);
  require(values.ndim() == 1 && values.shape(0) == indices.size(),
          "A sparse table needs as many indices as values.");
  if (starts.size() == 0)
    throw std::invalid_argument("The row offsets of the sparse table are empty.");
  check_length(table, starts.size() - 1, "A sparse table");
  const Column column = make_column(values, values.shape(0), 0);
  append(table, without_gil([&] {
           return transpose<Offset>({span_of(starts), span_of(indices), &column, n_columns, fill});
         }));
}

void add_missing(Columns& table) {
  table.columns.push_back(whole_column(Type::null, 0, nullptr, table.n_rows));
}

using Ticks = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::device::cpu>;

bool add_times(Columns& table, const Ticks& ticks, std::int64_t seconds, std::int64_t per_second) {
  check_length(table, ticks.shape(0), "A column");
  if (seconds < 1 || per_second < 1)
    throw std::invalid_argument("The length of a tick must be positive.");
  auto values = std::make_shared<std::vector<double>>(table.n_rows);
  Clock clock({seconds, per_second});
  for (std::size_t i = 0; i < table.n_rows; ++i) (*values)[i] = clock.seconds(ticks(i));
  table.columns.push_back(
      whole_column(Type::float64, sizeof(double), values->data(), table.n_rows));
  table.owners.push_back(std::move(values));
  return clock.is_inexact();
}

void put(Columns& table, std::size_t i, const Columns& other) {
  check_length(table, other.n_rows, "The other table");
  require(other.columns.size() == 1, "The other table is not one column.");
  table.columns.at(i) = other.columns[0];
  table.owners.insert(table.owners.end(), other.owners.begin(), other.owners.end());
}

bool is_all_missing(const Columns& table, std::size_t index) {
  constexpr std::size_t block = 4096;
  std::vector<double> values(std::min(block, table.n_rows));
  for (std::size_t begin = 0; begin < table.n_rows; begin += block) {
    const std::size_t end = std::min(begin + block, table.n_rows);
    read_block(table.columns.at(index), begin, end, values.data(), 1);
    for (std::size_t i = 0; i < end - begin; ++i)
      if (!std::isnan(values[i])) return false;
  }
  return true;
}

Owned<double> read(const Columns& table, std::size_t i) {
  std::vector<double> values(table.n_rows);
  read_block(table.columns.at(i), 0, table.n_rows, values.data(), 1);
  return to_numpy(std::move(values));
}

// Rows and values that a sparse column stores, and the value of all other rows.
std::optional<std::tuple<Owned<RowId>, Owned<double>, double>> stored(const Columns& table,
                                                                      std::size_t i) {
  const Column& column = table.columns.at(i);
  if (!column.sparse) return std::nullopt;
  const Sparse& sparse = *column.sparse;
  std::vector<RowId> rows(sparse.rows, sparse.rows + sparse.size);
  std::vector<double> values(sparse.size);
  read_rows(column, rows, values.data());
  const double fill = sparse.fill == column.missing ? std::nan("") : sparse.fill;
  return std::tuple{to_numpy(std::move(rows)), to_numpy(std::move(values)), fill};
}

void extend(Columns& table, const Columns& other) {
  check_length(table, other.n_rows, "The other table");
  append(table, Columns(other));  // a copy: a table may extend itself
}

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

using cuda::DeviceColumns;

void add_matrix_on_device(DeviceColumns& table, cuda::Address address, std::size_t n_columns,
                          std::int64_t row_stride, std::int64_t column_stride, char kind,
                          std::size_t size, nb::object owner) {
  const Type type = arboost::bindings::type_of(kind, size);
  const auto step = static_cast<std::int64_t>(size);
  require(address % size == 0 && row_stride % step == 0 && column_stride % step == 0,
          "The values of an array on a CUDA device must lie at multiples of their size.");
  table.owners.push_back(std::make_shared<PythonOwner>(std::move(owner)));
  for (std::size_t c = 0; c < n_columns; ++c)
    table.columns.push_back(
        {reinterpret_cast<const std::uint8_t*>(address) +
             static_cast<std::ptrdiff_t>(static_cast<std::int64_t>(c) * column_stride),
         row_stride, std::numeric_limits<double>::quiet_NaN(), type});
}

Columns to_host(const DeviceColumns& table) {
  GilRelease nogil;
  std::vector<std::uint32_t> all(table.columns.size());
  std::iota(all.begin(), all.end(), 0u);
  return cuda::gather(table, all, Rows(table.n_rows, nullptr));
}

Owned<double> read_on_device(const DeviceColumns& table, std::size_t i) {
  require(i < table.columns.size(), "The table has no such column.");
  std::vector<double> values(table.n_rows);
  {
    GilRelease nogil;
    const auto column = static_cast<std::uint32_t>(i);
    const Columns copy = cuda::gather(table, {&column, 1}, Rows(table.n_rows, nullptr));
    read_block(copy.columns[i], 0, table.n_rows, values.data(), 1);
  }
  return to_numpy(std::move(values));
}

void put_on_device(DeviceColumns& table, std::size_t i, const Columns& other) {
  require(other.n_rows == table.n_rows && other.columns.size() == 1 && i < table.columns.size(),
          "The other table is not one column of as many rows.");
  CallTeam team(table.n_rows, 0);
  cuda::put(table, i, other.columns[0], team);
}

// Methods of tables in the memory of the host and of a CUDA device.
template <class Table>
nb::class_<Table> bind_columns(nb::module_& m, const char* name, const char* description) {
  return nb::class_<Table>(m, name, description)
      .def(
          "set_missing",
          [](Table& table, double value, const std::vector<std::size_t>& except) {
            std::vector<bool> is_left(table.columns.size());
            for (const std::size_t i : except) is_left.at(i) = true;
            for (std::size_t i = 0; i < table.columns.size(); ++i)
              if (!is_left[i]) table.columns[i].missing = value;
          },
          "value"_a, "except_for"_a = std::vector<std::size_t>(),
          "Make a value mean missing, in all columns but some.")
      .def(
          "select",
          [](const Table& table, const std::vector<std::size_t>& indices) {
            Table result{.n_rows = table.n_rows, .columns = {}, .owners = table.owners};
            if constexpr (requires { table.device; }) result.device = table.device;
            for (const std::size_t i : indices) result.columns.push_back(table.columns.at(i));
            return result;
          },
          "indices"_a, "Table of the given columns, in that order.")
      .def(
          "inexact_columns", [](const Table& table) { return inexact_columns(table); },
          nb::call_guard<GilRelease>(),
          "Indices of columns with integers that a float64 cannot hold.")
      .def_prop_ro("n_rows", [](const Table& table) { return table.n_rows; })
      .def_prop_ro("n_columns", [](const Table& table) { return table.columns.size(); });
}

}  // namespace

void bind_table(nb::module_& m) {
  bind_columns<Columns>(m, "Columns", "Typed columns of a table, zero-copy where possible.")
      .def(
          "__init__", [](Columns* self, std::size_t n_rows) { new (self) Columns{n_rows, {}, {}}; },
          "n_rows"_a)
      .def("add", &add, "values"_a.noconvert(), "mask"_a.noconvert().none() = nb::none(),
           "Append a column; mask is True where a value is missing.")
      .def("add_matrix", &add_matrix, "values"_a.noconvert(), "Append every column of a matrix.")
      .def("add_missing", &add_missing, "Append a column without values.")
      .def("add_times", &add_times, "ticks"_a.noconvert(), "seconds"_a, "per_second"_a,
           "Append ticks as seconds; a tick takes so many, or a second has so many. Return whether "
           "float64 cannot tell all of them apart.")
      .def("add_sparse", &add_sparse, "rows"_a.noconvert(), "values"_a.noconvert(), "fill"_a,
           "Append a column of values in some rows, ascending; all others have the value fill.")
      .def("add_csc", &add_csc<std::int32_t>, "starts"_a.noconvert(), "rows"_a.noconvert(),
           "values"_a.noconvert(), "fill"_a, "Append the columns of a sparse matrix.")
      .def("add_csc", &add_csc<std::int64_t>, "starts"_a.noconvert(), "rows"_a.noconvert(),
           "values"_a.noconvert(), "fill"_a)
      .def("add_csr", &add_csr<std::int32_t>, "starts"_a.noconvert(), "indices"_a.noconvert(),
           "values"_a.noconvert(), "n_columns"_a, "fill"_a,
           "Append the columns of a sparse matrix that is stored by rows.")
      .def("add_csr", &add_csr<std::int64_t>, "starts"_a.noconvert(), "indices"_a.noconvert(),
           "values"_a.noconvert(), "n_columns"_a, "fill"_a)
      .def("extend", &extend, "other"_a, "Append the columns of another table.")
      .def("put", &put, "index"_a, "other"_a, "Replace a column by that of a table of one.")
      .def("read", &read, "index"_a, "The values of a column, NaN where they are missing.",
           by_owner)
      .def("is_all_missing", &is_all_missing, "index"_a, "Whether a column has no values.")
      .def("stored", &stored, "index"_a,
           "(rows, values, value of all other rows) of a sparse column; None of a dense one.",
           by_owner)
      .def_prop_ro(
          "has_sparse", [](const Columns& table) { return table.has_sparse(); },
          "Whether a column is sparse.");

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

  bind_columns<DeviceColumns>(m, "DeviceColumns",
                              "Columns of numbers in the memory of a CUDA device, without a copy.")
      .def(
          "__init__",
          [](DeviceColumns* self, std::size_t n_rows, int device) {
            new (self) DeviceColumns{device, n_rows, {}, {}};
          },
          "n_rows"_a, "device"_a)
      .def("add_matrix", &add_matrix_on_device, "address"_a, "n_columns"_a, "row_stride"_a,
           "column_stride"_a, "kind"_a, "itemsize"_a, "owner"_a,
           "Append every column of a matrix; strides are in bytes, and the kind is NumPy's.")
      .def("put", &put_on_device, "index"_a, "other"_a,
           "Replace a column by that of a table of one in the host's memory.")
      .def("read", &read_on_device, "index"_a,
           "The values of a column, NaN where they are missing.", by_owner)
      .def(
          "stored", [](const DeviceColumns&, std::size_t) { return nb::none(); }, "index"_a,
          "None: no column is sparse.")
      .def("to_host", &to_host, "Copy in the host's memory.")
      .def_prop_ro("device", [](const DeviceColumns& table) { return table.device; });
}

}  // namespace arboost::bindings
