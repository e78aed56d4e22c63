// Sequences, strings and shared objects as arguments: nanobind's casters are noexcept, so an
// allocation that fails in them ends the process; these throw, and Python raises MemoryError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/detail/nb_list.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/gil.h"

namespace nanobind::detail {

template <class Entry, class Allocator>
struct type_caster<std::vector<Entry, Allocator>>
    : list_caster<std::vector<Entry, Allocator>, Entry> {
  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) {
    PyObject* given = source.ptr();
    if (PyUnicode_CheckExact(given) || PyBytes_CheckExact(given) || !PySequence_Check(given))
      return false;
    const object entries = steal(PySequence_Fast(given, "not a sequence"));
    if (!entries.is_valid()) {
      if (PyErr_ExceptionMatches(PyExc_MemoryError)) raise_python_error();
      PyErr_Clear();
      return false;
    }
    const auto size = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(entries.ptr()));
    this->value.clear();
    this->value.reserve(size);
    make_caster<Entry> caster;
    flags = flags_for_local_caster<Entry>(flags);
    for (std::size_t i = 0; i < size; ++i) {
      PyObject* entry = PySequence_Fast_GET_ITEM(entries.ptr(), static_cast<Py_ssize_t>(i));
      if (!caster.from_python(entry, flags, cleanup) || !caster.template can_cast<Entry>())
        return false;
      this->value.push_back(caster.operator cast_t<Entry>());
    }
    return true;
  }
};

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
    if (text == nullptr) {
      if (PyErr_ExceptionMatches(PyExc_MemoryError)) raise_python_error();
      PyErr_Clear();
      return false;
    }
    value.assign(text, static_cast<std::size_t>(size));
    return true;
  }
  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  }
};

// Shares an object that Python owns.
template <class T>
struct type_caster<std::shared_ptr<T>> {
  static constexpr bool IsClass = true;
  using Caster = make_caster<T>;
  NB_TYPE_CASTER(std::shared_ptr<T>, Caster::Name)

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) {
    Caster caster;
    if (!caster.from_python(source, flags & ~cast_flags::convert, cleanup)) return false;
    std::decay_t<T>* const shared = caster.operator std::decay_t<T>*();
    value.reset();
    if (shared != nullptr)
      value = {std::make_shared<arboost::bindings::PythonOwner>(borrow(source)), shared};
    return true;
  }
};

}  // namespace nanobind::detail
