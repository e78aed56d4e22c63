// Binned tables in files.
#include <nanobind/nanobind.h>

#include <system_error>

#include "bindings/common.h"
#include "table/codes_file.h"

namespace arboost::bindings {
namespace {

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

void bind_stored(nb::module_& m) {
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
