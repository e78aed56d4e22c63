// Bindings of single kernels on prepared arrays, for tests and benchmarks.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <tuple>

#include "bindings/common.h"
#include "bindings/criterion_names.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/rows/histograms.h"

namespace arboost::bindings {
namespace {

using Elements = Vector<Element>;
using Output = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const Codes& binned(const Codes& codes) {
  require(codes.width < 4, "ranks have no histograms, and are partitioned by their order");
  codes.fetch();
  return codes;
}

void check_elements(const Codes& codes, const Elements& elements) {
  for (std::size_t i = 0; i < elements.shape(0); ++i)
    if (row_of(elements.data()[i]) >= codes.n_rows)
      throw std::invalid_argument("an element names a row that the table does not have");
}

// A histogram as the grower lays it out: hist[first[f] + code] for one output.
class HistogramKernel {
 public:
  explicit HistogramKernel(const Codes& codes)
      : codes_(binned(codes)), layout_(codes, 0, workspace_) {}

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
    GilRelease release;
    grow_kernels().accumulate(codes_.row_codes(), layout_.slots(), sums, elements.data(),
                              elements.shape(0), false, out.data());
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
  check_elements(binned(codes), elements);
  const std::size_t n = elements.shape(0);
  if (feature >= codes.n_features || out.shape(0) != n)
    throw std::invalid_argument("the arrays do not fit the table");
  require(codes.where[feature].kind != Storage::sparse, "the feature is stored sparsely");
  const SplitRule rule = rule_of(codes, feature, {bin, missing_left, nullptr});
  GilRelease release;
  const std::size_t store = codes.where[feature].store;
  return grow_kernels().partition(in_rows ? codes.codes_in_rows(store) : codes.column_codes(store),
                                  rule, elements.data(), n, out.data(), out.data() + n);
}

std::tuple<double, std::uint32_t, bool> find_split(
    const Array<std::int64_t, nb::ndim<2>>& hist, bool has_missing,
    const Vector<std::int64_t>& totals, double reg_lambda, std::int32_t min_h,
    std::int64_t min_count, const std::string& criterion_name, double h_per_g, double floor) {
  const std::size_t n_missing = has_missing ? 1 : 0, channels = hist.shape(1);
  const std::size_t n_counts = min_count > 1 ? 1 : 0;
  if (hist.shape(0) < 1 + n_missing || channels < 1 + n_counts || totals.shape(0) != channels)
    throw std::invalid_argument("the histogram has no bin or no output, or others than the totals");
  require(reg_lambda >= 0 && min_h >= 0, "a penalty or weight is below 0");
  const Criterion criterion = criterion_of(criterion_name);
  require(criterion != Criterion::absolute_error, "absolute errors have no histograms");
  require(criterion != Criterion::gain_ratio, "a gain ratio compares features");
  const std::size_t n_bins = hist.shape(0) - n_missing;
  const GainParams params{.reg_lambda = reg_lambda,
                          .reg_alpha = 0,
                          .max_delta_step = 0,
                          .min_h = min_h,
                          .min_count = min_count,
                          .outputs = static_cast<int>(channels - n_counts),
                          .channels = static_cast<int>(channels),
                          .criterion = criterion,
                          .two_classes = criterion != Criterion::quadratic &&
                                         criterion != Criterion::poisson &&
                                         channels - n_counts == 1,
                          .h_per_g = h_per_g};
  SplitScratch scratch(n_bins, channels);
  const FeatureCodes codes{static_cast<std::uint32_t>(n_bins), has_missing, false};
  const FeatureSplit split =
      grow_kernels().find_split(params, hist.data(), codes, totals.data(), floor, scratch);
  return {split.is_valid ? split.score : floor, split.bin, split.missing_left};
}

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<HistogramKernel>(m, "HistogramKernel", "Sums of packed gradients by code.")
      .def(nb::init<const Codes&>(), "codes"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("n_slots", &HistogramKernel::n_slots)
      .def_prop_ro("first_slots", &HistogramKernel::first_slots)
      .def("add", &HistogramKernel::add, "elements"_a, "wide"_a.none(), "out"_a.noconvert(),
           "Adds the rows of the elements to the histogram `out`.");
  m.def("partition_kernel", &partition, "codes"_a, "feature"_a, "bin"_a, "missing_left"_a,
        "elements"_a, "out"_a.noconvert(), "in_rows"_a = false,
        "Partitions elements into `out`, left ones to the front; returns their number. `in_rows`: "
        "from the row-major codes.");
  m.def("find_split_kernel", &find_split, "hist"_a, "has_missing"_a, "totals"_a, "reg_lambda"_a,
        "min_h"_a, "min_count"_a = 1, "criterion"_a = "quadratic", "h_per_g"_a = 1.0,
        "floor"_a = -1.0,
        "(score, bin, missing_left) of the best split of one feature, from its sums (n_codes, "
        "channels), the missing rows' last; the score is `floor` if none is above it. The last "
        "channel counts the rows if min_count is above 1.");
}

}  // namespace arboost::bindings
