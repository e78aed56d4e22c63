// Bindings of tables in the memory of a CUDA device. The methods are those of Columns.
#include "bin/device/device_columns.h"

#include <cstdlib>
#include <memory>
#include <numeric>

#include "bindings/common.h"

namespace arboost::bindings {
namespace {

using cuda::DeviceColumns;

void add_matrix(DeviceColumns& table, cuda::Address address, std::size_t n_columns,
                std::int64_t row_stride, std::int64_t column_stride, char kind, std::size_t size,
                nb::object owner) {
  const Type type = type_of(kind, size);
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

Owned<double> read(const DeviceColumns& table, std::size_t i) {
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

void put(DeviceColumns& table, std::size_t i, const Columns& other) {
  require(other.n_rows == table.n_rows && other.columns.size() == 1 && i < table.columns.size(),
          "The other table is not one column of as many rows.");
  GilRelease nogil;
  Team team = team_for(table.n_rows, 0);
  cuda::put(table, i, other.columns[0], team);
}

DeviceColumns pick(const DeviceColumns& table, const std::vector<std::size_t>& indices) {
  DeviceColumns result{table.device, table.n_rows, {}, table.owners};
  for (const std::size_t i : indices) result.columns.push_back(table.columns.at(i));
  return result;
}

void set_missing(DeviceColumns& table, double value, const std::vector<std::size_t>& except) {
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (std::find(except.begin(), except.end(), i) == except.end())
      table.columns[i].missing = value;
}

}  // namespace

void bind_device_columns(nb::module_& m) {
  nb::class_<DeviceColumns>(m, "DeviceColumns",
                            "Columns of numbers in the memory of a CUDA device, without a copy.")
      .def(
          "__init__",
          [](DeviceColumns* self, std::size_t n_rows, int device) {
            new (self) DeviceColumns{device, n_rows, {}, {}};
          },
          "n_rows"_a, "device"_a)
      .def("add_matrix", &add_matrix, "address"_a, "n_columns"_a, "row_stride"_a, "column_stride"_a,
           "kind"_a, "itemsize"_a, "owner"_a,
           "Append every column of a matrix; strides are in bytes, and the kind is NumPy's.")
      .def("set_missing", &set_missing, "value"_a, "except_for"_a = std::vector<std::size_t>(),
           "Make a value mean missing, in all columns but some.")
      .def("put", &put, "index"_a, "other"_a,
           "Replace a column by that of a table of one in the host's memory.")
      .def("select", &pick, "indices"_a, "Table of the given columns, in that order.")
      .def("read", &read, "index"_a, "The values of a column, NaN where they are missing.",
           by_owner)
      .def(
          "stored", [](const DeviceColumns&, std::size_t) { return nb::none(); }, "index"_a,
          "None: no column is sparse.")
      .def(
          "inexact_columns",
          [](const DeviceColumns& table) {
            GilRelease nogil;
            return cuda::inexact_columns(table);
          },
          "Indices of columns with integers that a float64 cannot hold.")
      .def("to_host", &to_host, "Copy in the host's memory.")
      .def_prop_ro("device", [](const DeviceColumns& table) { return table.device; })
      .def_prop_ro("n_rows", [](const DeviceColumns& table) { return table.n_rows; })
      .def_prop_ro("n_columns", [](const DeviceColumns& table) { return table.columns.size(); });
}

}  // namespace arboost::bindings
