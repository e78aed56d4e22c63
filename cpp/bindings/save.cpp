// Bindings of saving: numbers in few bits, what follows from the leaves of a tree, and checks.
#include <span>
#include <stdexcept>
#include <utility>  // move
#include <vector>

#include "bindings/common.h"
#include "bindings/forest.h"
#include "save/bits.h"
#include "save/check.h"
#include "save/derive.h"
#include "save/scaled.h"

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
                   const Written<nb::ndim<1>>& gain, double reg_lambda, double gain_factor) {
  const std::size_t n_nodes = left.size();
  if (cover.size() != n_nodes || value.shape(0) != n_nodes || gain.size() != n_nodes)
    throw std::invalid_argument("the forest's arrays differ in length");
  arboost::derive_splits(
      {tree_start.data(), tree_start.size()}, {left.data(), n_nodes},
      {.width = value.shape(1), .cover = cover.data(), .value = value.data(), .gain = gain.data()},
      {.reg_lambda = reg_lambda, .gain_factor = gain_factor});
}

std::span<const std::uint8_t> bytes_of(const Vector<bool>& truths) {
  return {reinterpret_cast<const std::uint8_t*>(truths.data()), truths.size()};
}

Owned<std::uint32_t> unpack_nodes(const Vector<bool>& is_split,
                                  const Vector<std::uint8_t>& of_splits,
                                  const Vector<std::uint8_t>& of_leaves, std::uint32_t largest) {
  std::vector<std::uint32_t> out(is_split.size());
  arboost::unpack_nodes(bytes_of(is_split), {of_splits.data(), of_splits.size()},
                        {of_leaves.data(), of_leaves.size()}, largest, out.data());
  return to_numpy(std::move(out));
}

void check_rows(const Vector<bool>& is_split, const Written<nb::ndim<2>>& out) {
  if (out.shape(0) != is_split.size() || out.shape(1) == 0)
    throw std::invalid_argument("the forest's arrays differ in length");
}

void spread_leaves(const Vector<bool>& is_split, const Vector<double>& of_leaves,
                   const Written<nb::ndim<2>>& out) {
  check_rows(is_split, out);
  arboost::spread_leaves(bytes_of(is_split), {of_leaves.data(), of_leaves.size()}, out.shape(1),
                         out.data());
}

void move_splits(const Vector<bool>& is_split, const Vector<std::uint64_t>& places,
                 const Written<nb::ndim<2>>& out) {
  check_rows(is_split, out);
  arboost::move_splits(bytes_of(is_split), {places.data(), places.size()}, out.shape(1),
                       out.data());
}

void check_forest(nb::handle forest, const Vector<bool>& categorical, std::size_t n_features,
                  std::size_t n_outputs) {
  const ForestArrays arrays(forest);
  const auto gain = nb::cast<Vector<double>>(forest.attr("gain"), false);
  const auto cover = nb::cast<Vector<double>>(forest.attr("cover"), false);
  const std::size_t n_nodes = arrays.left.size();
  if (gain.size() != n_nodes || cover.size() != n_nodes ||
      (categorical.size() != 0 && categorical.size() != n_features))
    throw std::invalid_argument("the forest's arrays differ in length");
  arboost::check_forest({.trees = arrays.views(),
                         .gain = {gain.data(), n_nodes},
                         .cover = {cover.data(), n_nodes},
                         .categorical = bytes_of(categorical),
                         .n_features = n_features,
                         .n_outputs = n_outputs});
}

}  // namespace

void bind_save(nb::module_& m) {
  m.def("pack_bits", &pack_bits, nb::arg("numbers"),
        "Bytes that hold the numbers in as few bits as the largest of each 64 needs.");
  m.def("unpack_bits", &unpack_bits, nb::arg("packed"), nb::arg("count"),
        "The numbers that `pack_bits` was given, of which there must be `count`.");
  m.def("pack_scaled", &pack_scaled, nb::arg("numbers"),
        "Bytes that hold doubles as integers of a unit, which is one for each 64.");
  m.def("unpack_scaled", &unpack_scaled, nb::arg("packed"), nb::arg("count"),
        "The numbers that `pack_scaled` was given, of which there must be `count`.");
  m.def("derive_splits", &derive_splits, nb::arg("tree_start"), nb::arg("left"),
        nb::arg("cover").noconvert(), nb::arg("value").noconvert(), nb::arg("gain").noconvert(),
        nb::arg("reg_lambda") = 0.0, nb::arg("gain_factor") = 1.0,
        "Writes cover, values and gain of the splits as they follow from those of the leaves.");
  m.def("unpack_nodes", &unpack_nodes, nb::arg("is_split"), nb::arg("of_splits"),
        nb::arg("of_leaves"), nb::arg("largest"),
        "Numbers of all nodes, from those of the splits and of the leaves as `pack_bits` has "
        "them.");
  m.def("spread_leaves", &spread_leaves, nb::arg("is_split"), nb::arg("of_leaves"),
        nb::arg("out").noconvert(), "Writes the rows of the leaves to their nodes.");
  m.def("move_splits", &move_splits, nb::arg("is_split"), nb::arg("places"),
        nb::arg("out").noconvert(), "Moves the numbers of splits by so many places.");
  m.def("check_forest", &check_forest, nb::arg("forest"), nb::arg("categorical"),
        nb::arg("n_features"), nb::arg("n_outputs"),
        "Raises ValueError unless every walk through the trees ends in one of their leaves.");
}

}  // namespace arboost::bindings
