// Bindings of saving: bit packing, numbers derived from leaves, and validation.
#include <cmath>  // isfinite
#include <stdexcept>

#include "bindings/common.h"
#include "bindings/forests.h"
#include "save/bits.h"
#include "save/derive.h"
#include "save/read_forest.h"

namespace arboost::bindings {
namespace {

template <class Shape>
using Written = nb::ndarray<double, Shape, nb::c_contig, nb::device::cpu>;

Owned<std::uint8_t> pack_bits(const Vector<std::uint64_t>& numbers) {
  return to_numpy(arboost::pack_bits({numbers.data(), numbers.size()}));
}

Owned<std::uint64_t> unpack_bits(const Vector<std::uint8_t>& packed, std::size_t count) {
  return to_numpy(arboost::unpack_bits({packed.data(), packed.size()}, count));
}

Owned<std::uint8_t> pack_scaled(const Vector<double>& numbers) {
  return to_numpy(arboost::pack_scaled({numbers.data(), numbers.size()}));
}

Owned<double> unpack_scaled(const Vector<std::uint8_t>& packed, std::size_t count) {
  return to_numpy(arboost::unpack_scaled({packed.data(), packed.size()}, count));
}

void derive_splits(const Vector<std::int64_t>& tree_start, const Vector<std::int32_t>& left,
                   const Written<nb::ndim<1>>& cover, const Written<nb::ndim<2>>& value,
                   const Written<nb::ndim<1>>& gain, double reg_lambda, double gain_factor,
                   bool whole_sums) {
  const std::size_t n_nodes = left.size();
  require(cover.size() == n_nodes && value.shape(0) == n_nodes && gain.size() == n_nodes,
          "the forest's arrays differ in length");
  arboost::derive_splits(
      {tree_start.data(), tree_start.size()}, {left.data(), n_nodes},
      {.width = value.shape(1), .cover = cover.data(), .value = value.data(), .gain = gain.data()},
      {.reg_lambda = reg_lambda, .gain_factor = gain_factor, .whole_sums = whole_sums});
}

std::span<const std::uint8_t> bytes_of(const Vector<bool>& truths) {
  return {reinterpret_cast<const std::uint8_t*>(truths.data()), truths.size()};
}

// Sections of a model file, by name. Untrusted, and must outlive the views.
class NamedSections {
 public:
  explicit NamedSections(const nb::dict& sections) : sections_(sections) {}

  bool has(const std::string& name) const { return sections_.contains(name.c_str()); }

  template <class T>
  std::span<const T> get(const std::string& name) const {
    if (!has(name)) throw nb::key_error(("no section " + name).c_str());
    Vector<T> array;
    if (!nb::try_cast(sections_[name.c_str()], array, false))
      throw nb::type_error((name + " is of another type").c_str());
    return {array.data(), array.size()};
  }

  DoublesSection doubles(const std::string& name) const {
    using Form = DoublesSection::Form;
    if (has(name + ", scaled")) return {Form::scaled, get<std::uint8_t>(name + ", scaled"), {}};
    if (has(name + ", table"))
      return {Form::table, get<std::uint8_t>(name), get<double>(name + ", table")};
    Vector<double> numbers;
    if (has(name) && nb::try_cast(sections_[name.c_str()], numbers, false))
      return {Form::as_they_are, {}, {numbers.data(), numbers.size()}};
    return {Form::whole, get<std::uint8_t>(name), {}};
  }

  NodeBits nodes(const std::string& name) const {
    return {get<std::uint8_t>(name), get<std::uint8_t>(name + " of leaves")};
  }

 private:
  const nb::dict& sections_;
};

ForestSections forest_sections(const NamedSections& named, std::size_t width) {
  ForestSections sections{.splits = named.get<std::uint32_t>("splits"),
                          .structure = named.get<std::uint8_t>("structure"),
                          .has_order = named.has("order"),
                          .order = {},
                          .feature = named.nodes("feature"),
                          .default_left = named.nodes("default_left"),
                          .by_set = named.nodes("by_set"),
                          .has_thresholds = named.has("thresholds"),
                          .thresholds = {},
                          .thresholds_of = {},
                          .threshold = {},
                          .threshold_of_leaves = named.doubles("threshold of leaves"),
                          .cover = named.get<std::uint8_t>("cover"),
                          .value = named.get<std::uint8_t>("value"),
                          .gain = named.get<std::uint8_t>("gain"),
                          .cover_of_leaves = named.doubles("cover of leaves"),
                          .value_of_leaves = named.doubles("value of leaves"),
                          .gain_of_leaves = named.doubles("gain of leaves"),
                          .shrinkage = {},
                          .width = width};
  if (sections.has_order) sections.order = named.get<std::uint8_t>("order");
  if (sections.has_thresholds) {
    sections.thresholds = named.get<double>("thresholds");
    sections.thresholds_of = named.get<std::uint32_t>("thresholds_of");
    sections.threshold.packed = named.get<std::uint8_t>("threshold");
  } else {
    sections.threshold = named.doubles("threshold");
  }
  if (named.has("shrinkage")) {
    const auto shrinkage = named.get<double>("shrinkage");
    if (shrinkage.size() != 2 || !std::isfinite(shrinkage[0]) || !std::isfinite(shrinkage[1]))
      throw std::invalid_argument("shrinkage must be two finite numbers");
    sections.shrinkage = {
        .reg_lambda = shrinkage[0], .gain_factor = shrinkage[1], .whole_sums = false};
  }
  return sections;
}

nb::dict read_forest(const nb::dict& sections, std::size_t width) {
  const NamedSections named(sections);
  ForestVectors vectors = arboost::read_forest(forest_sections(named, width));
  const std::size_t n_nodes = vectors.left.size();
  nb::dict arrays;
  arrays["tree_start"] = to_numpy(std::move(vectors.tree_start));
  arrays["feature"] = to_numpy(std::move(vectors.feature));
  arrays["threshold"] = to_numpy(std::move(vectors.threshold));
  arrays["left"] = to_numpy(std::move(vectors.left));
  arrays["default_left"] = to_numpy(std::move(vectors.default_left));
  arrays["value"] = to_numpy<2>(std::move(vectors.value), {n_nodes, width});
  arrays["gain"] = to_numpy(std::move(vectors.gain));
  arrays["cover"] = to_numpy(std::move(vectors.cover));
  arrays["level_set"] = to_numpy(std::move(vectors.level_set));
  return arrays;
}

void check_forest(nb::handle forest, const Vector<bool>& categorical, std::size_t n_features,
                  std::size_t n_outputs) {
  const CoveredForest arrays(forest);
  const auto gain = array_attribute<Vector<double>>(forest, "gain");
  const std::size_t n_nodes = arrays.left.size();
  if (gain.size() != n_nodes || (categorical.size() != 0 && categorical.size() != n_features))
    throw std::invalid_argument("the forest's arrays differ in length");
  arboost::check_forest({.trees = arrays.views(),
                         .gain = span_of(gain),
                         .cover = span_of(arrays.cover),
                         .categorical = bytes_of(categorical),
                         .n_features = n_features,
                         .n_outputs = n_outputs});
}

}  // namespace

void bind_save(nb::module_& m) {
  m.def("pack_bits", &pack_bits, "numbers"_a,
        "Bit-packed numbers, in blocks of 64 with the width of the largest.");
  m.def("unpack_bits", &unpack_bits, "packed"_a, "count"_a,
        "The numbers that `pack_bits` was given, of which there must be `count`.");
  m.def("pack_scaled", &pack_scaled, "numbers"_a,
        "Bit-packed doubles, as integers times a power of two for each block of 64.");
  m.def("unpack_scaled", &unpack_scaled, "packed"_a, "count"_a,
        "The numbers that `pack_scaled` was given, of which there must be `count`.");
  m.def("derive_splits", &derive_splits, "tree_start"_a, "left"_a, "cover"_a.noconvert(),
        "value"_a.noconvert(), "gain"_a.noconvert(), "reg_lambda"_a = 0.0, "gain_factor"_a = 1.0,
        "whole_sums"_a = true,
        "Writes cover, values and gain of the splits, derived from those of the leaves.");
  m.def("read_forest", &read_forest, "sections"_a, "width"_a,
        "Arrays of trees by name, from sections of a model file; truth values are bytes.");
  m.def("check_forest", &check_forest, "forest"_a, "categorical"_a, "n_features"_a, "n_outputs"_a,
        "Raises ValueError unless every walk through the trees ends in one of their leaves.");
}

}  // namespace arboost::bindings
