// Bindings of single kernels on prepared arrays, for tests and benchmarks.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "bindings/common.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/rows/histograms.h"

namespace arboost::bindings {
namespace {

using Elements = Vector<Element>;
using Output = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_elements(const Codes& codes, const Elements& elements) {
  for (std::size_t i = 0; i < elements.shape(0); ++i)
    if (row_of(elements.data()[i]) >= codes.n_rows)
      throw std::invalid_argument("an element names a row that the table does not have");
}

// A histogram as the grower lays it out: hist[first[f] + code] for one output.
class HistogramKernel {
 public:
  explicit HistogramKernel(const Codes& codes) : codes_(codes), layout_(codes, 1, 0, workspace_) {}

  std::size_t n_slots() const { return layout_.size(); }
  std::vector<std::uint32_t> first_slots() const {
    const Slots& slots = layout_.slots();
    return {slots.first, slots.first + slots.n_stores + 1};
  }
  void add(const Elements& elements, const std::optional<Vector<std::int64_t>>& wide, Output out) {
    check_elements(codes_, elements);
    if (out.shape(0) != n_slots() || (wide && wide->shape(0) != codes_.n_rows))
      throw std::invalid_argument("the arrays do not fit the table");
    const RowSums sums{wide ? wide->data() : nullptr, 1, false};
    nb::gil_scoped_release release;
    grow_kernels().accumulate(codes_, layout_.slots(), sums, elements.data(), elements.shape(0),
                              false, out.data());
  }

 private:
  const Codes& codes_;
  Workspace workspace_;
  Histograms layout_;
};

std::size_t partition(const Codes& codes, std::size_t feature, std::uint32_t bin, bool missing_left,
                      const Elements& elements,
                      nb::ndarray<Element, nb::ndim<1>, nb::c_contig, nb::device::cpu> out,
                      bool in_rows) {
  check_elements(codes, elements);
  const std::size_t n = elements.shape(0);
  if (feature >= codes.n_features || out.shape(0) != n)
    throw std::invalid_argument("the arrays do not fit the table");
  const SplitRule rule = rule_of(codes, feature, {bin, missing_left, nullptr});
  nb::gil_scoped_release release;
  const std::size_t store = codes.where[feature].store;
  return grow_kernels().partition(in_rows ? codes.codes_in_rows(store) : codes.column_codes(store),
                                  rule, elements.data(), n, out.data(), out.data() + n);
}

std::tuple<double, std::uint32_t, bool> find_split(const Vector<std::int64_t>& hist,
                                                   bool has_missing, std::int64_t total,
                                                   double reg_lambda, std::int32_t min_h) {
  const std::size_t n_bins = hist.shape(0) - (has_missing ? 1 : 0);
  const GainParams params{.reg_lambda = reg_lambda,
                          .reg_alpha = 0,
                          .max_delta_step = 0,
                          .min_h = min_h,
                          .min_count = 1,
                          .outputs = 1,
                          .channels = 1};
  SplitScratch scratch(n_bins, 1);
  const FeatureSplit split =
      grow_kernels().find_split(params, hist.data(), n_bins, has_missing, &total, -1, scratch);
  return {split.found ? split.score : -1, split.bin, split.missing_left};
}

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<HistogramKernel>(m, "HistogramKernel", "Sums of packed gradients by code.")
      .def(nb::init<const Codes&>(), nb::arg("codes"), nb::keep_alive<1, 2>())
      .def_prop_ro("n_slots", &HistogramKernel::n_slots)
      .def_prop_ro("first_slots", &HistogramKernel::first_slots)
      .def("add", &HistogramKernel::add, nb::arg("elements"), nb::arg("wide").none(),
           nb::arg("out").noconvert(), "Adds the rows of the elements to the histogram `out`.");
  m.def("partition_kernel", &partition, nb::arg("codes"), nb::arg("feature"), nb::arg("bin"),
        nb::arg("missing_left"), nb::arg("elements"), nb::arg("out").noconvert(),
        nb::arg("in_rows") = false,
        "Partitions elements into `out`, left ones to the front; returns their number. `in_rows`: "
        "from the row-major codes.");
  m.def("find_split_kernel", &find_split, nb::arg("hist"), nb::arg("has_missing"), nb::arg("total"),
        nb::arg("reg_lambda"), nb::arg("min_h"),
        "(score, bin, missing_left) of the best split of one feature; score -1 for none.");
}

}  // namespace arboost::bindings
