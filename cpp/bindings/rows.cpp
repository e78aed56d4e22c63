// Bindings of predictions for single rows, directly from Python objects, and of links.
//
// One row costs about as much as its trees: no import, conversion or thread; arrays are read and
// written through the buffer protocol.

#include <cmath>
#include <cstring>  // memcpy
#include <limits>
#include <stdexcept>

#include "bindings/common.h"
#include "bindings/forests.h"
#include "predict/links.h"

namespace arboost::bindings {
namespace {

using RawScores = Array<double, nb::ndim<2>>;

// A Python buffer, released at the end.
class Borrowed {
 public:
  Borrowed(PyObject* object, int flags) : is_there_(PyObject_GetBuffer(object, &view, flags) == 0) {
    if (!is_there_) PyErr_Clear();
  }
  ~Borrowed() {
    if (is_there_) PyBuffer_Release(&view);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  explicit operator bool() const { return is_there_; }

  Py_buffer view;

 private:
  bool is_there_;
};

template <class T>
double value_at(const std::byte* row, std::ptrdiff_t stride, std::size_t column) {
  T value;
  std::memcpy(&value, row + static_cast<std::ptrdiff_t>(column) * stride, sizeof value);
  return static_cast<double>(value);
}

// A few numbers, on the heap only if there are many.
class Numbers {
 public:
  explicit Numbers(std::size_t n) : many_(n > most_few ? n : 0), size_(n) {}
  double* data() { return many_.empty() ? few_ : many_.data(); }
  std::size_t size() const { return size_; }
  double& operator[](std::size_t i) { return data()[i]; }

 private:
  static constexpr std::size_t most_few = 64;
  double few_[most_few];
  std::vector<double> many_;
  std::size_t size_;
};

// Reads Python numbers as a row; false for integers that are not exact doubles.
bool read_sequence(PyObject* row, Numbers& values) {
  const bool is_list = PyList_CheckExact(row);
  if (!is_list && !PyTuple_CheckExact(row)) return false;
  const Py_ssize_t n = is_list ? PyList_GET_SIZE(row) : PyTuple_GET_SIZE(row);
  if (static_cast<std::size_t>(n) != values.size()) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = is_list ? PyList_GET_ITEM(row, i) : PyTuple_GET_ITEM(row, i);
    double& value = values[static_cast<std::size_t>(i)];
    if (PyFloat_CheckExact(item)) {
      value = PyFloat_AS_DOUBLE(item);
    } else if (PyLong_CheckExact(item)) {
      constexpr long long exact = 1ll << 53;
      int beyond = 0;
      const long long whole = PyLong_AsLongLongAndOverflow(item, &beyond);
      if (beyond != 0 || whole > exact || whole < -exact) return false;
      value = static_cast<double>(whole);
    } else {
      return false;
    }
  }
  return true;
}

// Predictions for tables of one row, of a model with numerical columns whose scores are sums or
// means. For any other table the result is None, or -1.
class RowModel {
 public:
  RowModel(nb::object forest, const Vector<double>& base, const std::string& link, double mean_of,
           double missing)
      : forest_(std::move(forest)),
        packed_(forest_of(forest_).packed),
        base_(base.data(), base.data() + base.size()),
        link_(link_of(link)),
        width_(answer_width(link_, base_.size())),
        mean_of_(mean_of),
        missing_(missing),
        empty_(nb::module_::import_("numpy").attr("empty")),
        array_type_(nb::module_::import_("numpy").attr("ndarray")),
        scores_shape_(nb::make_tuple(1, base_.size())),
        answers_shape_(nb::make_tuple(1, width_)),
        number_shape_(nb::make_tuple(1)) {
    require(base_.size() == packed_.n_outputs(), "another number of outputs");
  }

  // The raw scores, shape (1, n_outputs).
  nb::object raw(nb::handle X) const {
    Numbers scores(base_.size());
    return walk(X.ptr(), scores) ? made(scores_shape_, scores) : nb::none();
  }
  // Predictions through the link, shape (1, width).
  nb::object answers(nb::handle X) const { return answered(X, answers_shape_); }
  // The same, but of one number (1,).
  nb::object values(nb::handle X) const {
    return answered(X, width_ == 1 ? number_shape_ : answers_shape_);
  }
  // Index of the largest score, the first among equal ones; for one score of two classes, score >
  // 0.
  Py_ssize_t likeliest(nb::handle X) const {
    Numbers scores(base_.size());
    if (!walk(X.ptr(), scores)) return -1;
    if (link_ != Link::softmax && link_ != Link::shares) return scores[0] > 0 ? 1 : 0;
    return std::max_element(scores.data(), scores.data() + scores.size()) - scores.data();
  }

 private:
  static const KeptForest& forest_of(nb::handle forest) {
    if (!nb::isinstance<KeptForest>(forest)) throw nb::type_error("forest is not a PackedForest");
    return nb::cast<const KeptForest&>(forest);
  }

  bool walk(PyObject* X, Numbers& scores) const {
    if (PyList_CheckExact(X)) {
      Numbers values(packed_.n_columns());
      if (PyList_GET_SIZE(X) != 1 || !read_sequence(PyList_GET_ITEM(X, 0), values)) return false;
      add([&](std::size_t column) { return values[column]; }, scores);
      return true;
    }
    // Subclasses may redefine their values, as masked arrays do.
    if (Py_TYPE(X) != reinterpret_cast<PyTypeObject*>(array_type_.ptr())) return false;
    const Borrowed table(X, PyBUF_STRIDED_RO | PyBUF_FORMAT);
    if (!table || table.view.ndim != 2 || table.view.shape[0] != 1 ||
        static_cast<std::size_t>(table.view.shape[1]) != packed_.n_columns())
      return false;
    const char* format = table.view.format;
    if (format == nullptr || format[0] == '\0' || format[1] != '\0') return false;
    const auto* row = static_cast<const std::byte*>(table.view.buf);
    const std::ptrdiff_t stride = table.view.strides[1];
    if (*format == 'f')
      add([=](std::size_t column) { return value_at<float>(row, stride, column); }, scores);
    else if (*format == 'd')
      add([=](std::size_t column) { return value_at<double>(row, stride, column); }, scores);
    else
      return false;
    return true;
  }

  template <class ValueOf>
  void add(ValueOf value_of, Numbers& scores) const {
    const bool is_mean = mean_of_ > 0;
    for (std::size_t k = 0; k < scores.size(); ++k) scores[k] = is_mean ? 0.0 : base_[k];
    if (std::isnan(missing_))
      packed_.traverse_row(value_of, scores.data());
    else
      packed_.traverse_row(
          [&](std::size_t column) {
            const double x = value_of(column);
            return x == missing_ ? std::numeric_limits<double>::quiet_NaN() : x;
          },
          scores.data());
    if (is_mean)
      for (std::size_t k = 0; k < scores.size(); ++k) scores[k] = scores[k] / mean_of_ + base_[k];
  }

  nb::object answered(nb::handle X, const nb::tuple& shape) const {
    Numbers scores(base_.size()), numbers(width_);
    if (!walk(X.ptr(), scores)) return nb::none();
    apply_link(link_, scores.data(), 1, scores.size(), numbers.data());
    return made(shape, numbers);
  }

  nb::object made(const nb::tuple& shape, Numbers& numbers) const {
    nb::object array = nb::steal(PyObject_CallOneArg(empty_.ptr(), shape.ptr()));
    if (!array.is_valid()) throw nb::python_error();
    const Borrowed out(array.ptr(), PyBUF_WRITABLE);
    const std::size_t bytes = numbers.size() * sizeof(double);
    if (!out || static_cast<std::size_t>(out.view.len) != bytes)
      throw std::logic_error("an array of another size");
    std::memcpy(out.view.buf, numbers.data(), bytes);
    return array;
  }

  nb::object forest_;
  const PackedForest& packed_;
  std::vector<double> base_;
  Link link_;
  std::size_t width_;
  double mean_of_;
  double missing_;
  nb::object empty_, array_type_;
  nb::tuple scores_shape_, answers_shape_, number_shape_;
};

void link_scores(const std::string& name, const RawScores& raw, const Scores& out) {
  const Link link = link_of(name);
  if (out.shape(0) != raw.shape(0) || out.shape(1) != answer_width(link, raw.shape(1)))
    throw std::invalid_argument("out has not the shape of the answers");
  GilRelease release;
  apply_link(link, raw.data(), raw.shape(0), raw.shape(1), out.data());
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<RowModel>(m, "RowModel", "Predictions of a model for tables of one row.")
      .def(nb::init<nb::object, const Vector<double>&, const std::string&, double, double>(),
           "forest"_a, "base"_a, "link"_a, "mean_of"_a, "missing"_a,
           "`forest` is a PackedForest; `mean_of` what its sums are divided by, 0 for sums.")
      .def("raw", &RowModel::raw, "X"_a.none(),
           nb::sig("def raw(self, X: object) -> NDArray[numpy.float64] | None"),
           "Raw scores, shape (1, n_outputs); None unless X is one row of plain numbers.")
      .def("answers", &RowModel::answers, "X"_a.none(),
           nb::sig("def answers(self, X: object) -> NDArray[numpy.float64] | None"),
           "Predictions through the link, shape (1, width).")
      .def("values", &RowModel::values, "X"_a.none(),
           nb::sig("def values(self, X: object) -> NDArray[numpy.float64] | None"),
           "The same, with the shape (1,) for a single column.")
      .def("likeliest", &RowModel::likeliest, "X"_a.none(),
           "Index of the most probable class; -1 unless X is one row of plain numbers.");
  m.def("link", &link_scores, "name"_a, "raw"_a, "out"_a.noconvert(),
        "Writes predictions, the link of the raw scores, to out[row].");
}

}  // namespace arboost::bindings
