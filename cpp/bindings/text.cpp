// Bindings of text: strings of Python and NumPy -> Text, and the index of known levels.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <numeric>  // iota
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "bindings/common.h"
#include "table/string_levels.h"

namespace arboost::bindings {
namespace {

// True for None, NaN, and pandas' NA and NaT.
bool is_missing(PyObject* value) {
  if (value == Py_None) return true;
  if (PyFloat_Check(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    return number != number;
  }
  const std::string_view name = Py_TYPE(value)->tp_name;
  return name.ends_with("NAType") || name.ends_with("NaTType");
}

// Adds a str or bytes and returns its number; -1 for any other object.
std::int32_t add_string(PyObject* value, StringSet& strings) {
  if (PyBytes_Check(value))
    return strings.add(
        {PyBytes_AS_STRING(value), static_cast<std::size_t>(PyBytes_GET_SIZE(value))});
  if (!PyUnicode_Check(value)) return -1;
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(value, &size))
    return strings.add({text, static_cast<std::size_t>(size)});
  PyErr_Clear();  // half of a surrogate pair, which UTF-8 has no place for
  const auto bytes =
      nb::steal<nb::bytes>(PyUnicode_AsEncodedString(value, "utf-8", "surrogatepass"));
  if (!bytes.is_valid()) throw nb::python_error();
  return strings.add({bytes.c_str(), bytes.size()});
}

// The text of a list of str, bytes and missing values up to the first value of another kind, and
// where that is; the length of the list where there is none.
std::pair<Text, std::size_t> of_objects(const nb::list& values) {
  Text text;
  text.codes.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const nb::object value = values[i];
    std::int32_t code = add_string(value.ptr(), text.strings);
    if (code < 0 && !is_missing(value.ptr())) return {std::move(text), i};
    text.codes.push_back(code);
  }
  return {std::move(text), values.size()};
}

// Rows of a text whose rows are the entries of a dictionary; code -1 is missing.
Text take(const Text& entries, const Vector<std::int64_t>& codes) {
  Text result;
  result.strings = entries.strings;
  result.codes.reserve(codes.size());
  const auto n_entries = static_cast<std::int64_t>(entries.codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::int64_t code = codes.data()[i];
    if (code < -1 || code >= n_entries) throw std::invalid_argument("A code without a category.");
    result.codes.push_back(code < 0 ? -1 : entries.codes[static_cast<std::size_t>(code)]);
  }
  return result;
}

std::tuple<Owned<std::uint8_t>, Owned<std::int64_t>, Owned<std::int32_t>> levels(const Text& text) {
  std::vector<std::int32_t> codes;
  Strings sorted = without_gil([&] { return sorted_levels(text, codes); });
  return {to_numpy(std::move(sorted.bytes)), to_numpy(std::move(sorted.offsets)),
          to_numpy(std::move(codes))};
}

// Levels of all batches so far, numbered in the order of their first occurrence: the strings of a
// text without rows.
struct LevelSet {
  Text text;
};

std::vector<std::string_view> strings_of(const Vector<std::uint8_t>& bytes,
                                         const Vector<std::int64_t>& offsets, bool ascend = true) {
  return checked_strings({bytes.data(), bytes.size()}, {offsets.data(), offsets.size()}, ascend);
}

Owned<std::int32_t> add_strings(LevelSet& set, const Vector<std::uint8_t>& bytes,
                                const Vector<std::int64_t>& offsets) {
  std::vector<std::int32_t> numbers;
  for (const auto text : strings_of(bytes, offsets, false))
    numbers.push_back(set.text.strings.add(text));
  return to_numpy(std::move(numbers));
}

std::tuple<Owned<std::uint8_t>, Owned<std::int64_t>, Owned<std::int32_t>> sorted_set(
    LevelSet& set) {
  set.text.codes.resize(set.text.strings.size());
  std::iota(set.text.codes.begin(), set.text.codes.end(), 0);
  auto text_levels = levels(set.text);
  set.text.codes = {};
  return text_levels;
}

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<Text>(m, "Text", "A column of strings: distinct strings, and the index of each row.")
      .def_static("of_objects", &of_objects, "values"_a,
                  "(text, index of the first value that is neither a string nor missing, or the "
                  "number of values).")
      .def("take", &take, "codes"_a,
           "Text whose rows are the given rows of this one; -1 is missing.")
      .def("levels", &levels,
           "(bytes, offsets, codes): the strings that occur, sorted by their bytes, and each row's "
           "place among them, -1 where it is missing.",
           nb::rv_policy::automatic)
      .def_prop_ro("n_present",
                   [](const Text& text) {
                     return text.codes.size() - static_cast<std::size_t>(std::count(
                                                    text.codes.begin(), text.codes.end(), -1));
                   })
      .def_prop_ro("n_rows", [](const Text& text) { return text.codes.size(); });

  nb::class_<LevelSet>(m, "LevelSet", "Strings, numbered in the order of their first occurrence.")
      .def(nb::init<>())
      .def(
          "add_text",
          [](LevelSet& set, const Text& text) {
            return to_numpy(add_rows(set.text.strings, text));
          },
          "text"_a, "Number of each row's string, a new one for a new string; -1 is missing.",
          nb::rv_policy::automatic)
      .def("add", &add_strings, "bytes"_a, "offsets"_a,
           "Number of each of these strings, a new one for a new string.", nb::rv_policy::automatic)
      .def("levels", &sorted_set,
           "(bytes, offsets, places): the strings, sorted by their bytes, and the place of each "
           "number among them.",
           nb::rv_policy::automatic)
      .def(
          "strings",
          [](const LevelSet& set) {
            Strings all = in_order(set.text.strings);
            return std::pair(to_numpy(std::move(all.bytes)), to_numpy(std::move(all.offsets)));
          },
          "(bytes, offsets) of the strings by number.", nb::rv_policy::automatic)
      .def_prop_ro("n_bytes", [](const LevelSet& set) { return set.text.strings.n_bytes(); })
      .def("__len__", [](const LevelSet& set) { return set.text.strings.size(); });

  nb::class_<StringSet>(m, "LevelIndex", "Hash table of known levels.")
      .def(
          "__init__",
          [](StringSet* self, const Vector<std::uint8_t>& bytes,
             const Vector<std::int64_t>& offsets) {
            new (self) StringSet;
            for (const auto text : strings_of(bytes, offsets)) self->add(text);
          },
          "bytes"_a, "offsets"_a)
      .def(
          "codes",
          [](const StringSet& known, const Text& text) { return to_numpy(look_up(known, text)); },
          "text"_a, "Level of each row, -1 where it is missing or unknown.",
          nb::rv_policy::automatic);

  m.def(
      "check_levels",
      [](const Vector<std::uint8_t>& bytes, const Vector<std::int64_t>& offsets) {
        strings_of(bytes, offsets);
      },
      "bytes"_a, "offsets"_a, "Raise ValueError unless the strings are sorted, each once.");
}

}  // namespace arboost::bindings
