// Shared by all bindings: array types, casters, checks, the GIL, and the poll that stops a team on
// Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>  // move
#include <vector>

#include "base/parallel.h"
#include "base/require.h"
#include "bindings/casters.h"
#include "bindings/gil.h"
#include "table/columns.h"

namespace arboost::bindings {

namespace nb = nanobind;
using namespace nb::literals;

constexpr auto by_owner = nb::rv_policy::automatic;  // arrays that hold their owner

template <class T, class Shape>
using Array = nb::ndarray<const T, Shape, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = Array<T, nb::ndim<1>>;

// Arrays that own the memory of vectors.
template <class T, int dimensions = 1>
using Owned = nb::ndarray<nb::numpy, T, nb::ndim<dimensions>>;

template <int dimensions, class T>
Owned<T, dimensions> to_numpy(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Owned<T, dimensions>(kept->data(), shape, owner);
}
template <class T>
Owned<T> to_numpy(std::vector<T> values) {
  const std::size_t size = values.size();
  return to_numpy<1>(std::move(values), {size});
}
template <class T>
std::vector<Owned<T>> each_to_numpy(std::vector<std::vector<T>> lists) {
  std::vector<Owned<T>> arrays;
  for (std::vector<T>& list : lists) arrays.push_back(to_numpy(std::move(list)));
  return arrays;
}

template <class T, class Shape>
std::span<const T> span_of(const Array<T, Shape>& array) {
  return {array.data(), array.size()};
}
template <class T>
std::span<const T> span_of(const std::optional<Vector<T>>& array) {
  return array ? span_of(*array) : std::span<const T>();
}
inline std::vector<std::span<const double>> spans_of(const std::vector<Vector<double>>& arrays) {
  std::vector<std::span<const double>> spans;
  for (const auto& array : arrays) spans.push_back(span_of(array));
  return spans;
}

// Makes fields of a record attributes of its class, under their names:
//   ARBOOST_BIND_FIELDS(class_of_it, Record, first, second);
#define ARBOOST_BIND_FIELDS(cls, Record, ...) \
  ARBOOST_EXPAND(ARBOOST_BIND_FIELD(cls, Record, __VA_ARGS__))
#define ARBOOST_BIND_FIELD(cls, Record, field, ...) \
  (cls).def_rw(#field, &Record::field);             \
  __VA_OPT__(ARBOOST_BIND_MORE ARBOOST_PARENS(cls, Record, __VA_ARGS__))
#define ARBOOST_BIND_MORE() ARBOOST_BIND_FIELD
#define ARBOOST_PARENS ()
// A macro of itself is expanded once a scan; these are 64 scans.
#define ARBOOST_EXPAND(...) \
  ARBOOST_SCAN_16(ARBOOST_SCAN_16(ARBOOST_SCAN_16(ARBOOST_SCAN_16(__VA_ARGS__))))
#define ARBOOST_SCAN_16(...) \
  ARBOOST_SCAN_4(ARBOOST_SCAN_4(ARBOOST_SCAN_4(ARBOOST_SCAN_4(__VA_ARGS__))))
#define ARBOOST_SCAN_4(...) ARBOOST_SCAN(ARBOOST_SCAN(ARBOOST_SCAN(ARBOOST_SCAN(__VA_ARGS__))))
#define ARBOOST_SCAN(...) __VA_ARGS__

// The enumerator of a name; names are in the order of the enumerators.
template <class Enum, std::size_t n>
Enum named(const char* const (&names)[n], const std::string& name, const std::string& error) {
  const auto entry = std::find(names, names + n, name);
  if (entry == names + n) throw std::invalid_argument(error);
  return static_cast<Enum>(entry - names);
}

// Kind of a number as NumPy has it; V for types that it has no number for.
inline char kind_of(nb::dlpack::dtype type) {
  return type.code < 7 && type.lanes == 1 ? "iufVVVb"[type.code] : 'V';
}
// Type of a column's values, by their kind and bytes.
inline Type type_of(char kind, std::size_t size) {
  const auto pick = [size](Type b1, Type b2, Type b4, Type b8) {
    return size == 1 ? b1 : size == 2 ? b2 : size == 4 ? b4 : size == 8 ? b8 : Type::null;
  };
  Type type = Type::null;
  if (kind == 'b') type = pick(Type::boolean, Type::null, Type::null, Type::null);
  if (kind == 'i') type = pick(Type::int8, Type::int16, Type::int32, Type::int64);
  if (kind == 'u') type = pick(Type::uint8, Type::uint16, Type::uint32, Type::uint64);
  if (kind == 'f') type = pick(Type::null, Type::float16, Type::float32, Type::float64);
  if (type == Type::null)
    throw nb::type_error("A column must be of numbers of at most 64 bits, or of bool.");
  return type;
}

// An array of exactly this type.
template <class Array>
Array to_array(nb::handle given, const char* name) {
  Array array;
  if (!nb::try_cast(given, array, false))
    throw nb::type_error((std::string(name) + " is not an array of the expected type").c_str());
  return array;
}
template <class Array>
Array array_attribute(nb::handle owner, const char* name) {
  return to_array<Array>(owner.attr(name), name);
}

// Poll of a team: acquires the GIL and raises on Ctrl-C. Called by the Python thread, which has
// released the GIL. Python delivers Ctrl-C to its main thread only.
inline void poll_python() {
  GilAcquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Number of threads for work on table cells: waking a thread costs as much as thousands of cells.
// n_threads = 0 means all CPUs of this process; counting them takes as long as a small table.
inline int threads_for(std::size_t cells, int n_threads) {
  constexpr std::size_t cells_per_thread = 65536;
  require(n_threads >= 0, "n_threads must be 0, for all CPUs, or more");
  const std::size_t useful = 1 + cells / cells_per_thread;
  if (n_threads == 0) n_threads = useful > 1 ? available_threads() : 1;
  return static_cast<int>(std::min<std::size_t>(useful, static_cast<std::size_t>(n_threads)));
}
inline Team team_for(std::size_t cells, int n_threads) {
  return Team(threads_for(cells, n_threads), poll_python);
}

// A team for work on these cells; the GIL is released as long as it lives.
class CallTeam {
 public:
  CallTeam(std::size_t cells, int n_threads, Team::Poll poll = poll_python)
      : team_(threads_for(cells, n_threads), std::move(poll)) {}
  operator Team&() { return team_; }  // NOLINT: implicit, so that it passes as its team

 private:
  GilRelease release_;
  Team team_;
};
template <class Call>
auto with_team(std::size_t cells, int n_threads, Call call) {
  CallTeam team(cells, n_threads);
  return call(team);
}

// Calls call(rows, team) without the GIL, for rows of Columns or DeviceColumns: all or some.
template <class Table, class Call>
auto with_rows(const Table& table, const std::optional<Vector<RowId>>& index, int n_threads,
               Call call) {
  GilRelease release;
  Rows rows(table.n_rows, nullptr);
  if (index) rows = Rows(index->size(), index->data());
  require(!index || rows.size() == 0 ||
              *std::max_element(rows.index(), rows.index() + rows.size()) < table.n_rows,
          "A row index lies beyond the table.");
  Team team = team_for(rows.size() * table.columns.size(), n_threads);
  return call(rows, team);
}

}  // namespace arboost::bindings
