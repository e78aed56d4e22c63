// Bindings of saving: integers in few bits, and what follows from the leaves of a tree.
#include <stdexcept>

#include "bindings/common.h"
#include "save/bits.h"
#include "save/derive.h"

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

void derive_splits(const Vector<std::int64_t>& tree_start, const Vector<std::int32_t>& left,
                   const Written<nb::ndim<1>>& cover, const Written<nb::ndim<2>>& value,
                   const Written<nb::ndim<1>>& gain) {
  const std::size_t n_nodes = left.size();
  if (cover.size() != n_nodes || value.shape(0) != n_nodes || gain.size() != n_nodes)
    throw std::invalid_argument("the forest's arrays differ in length");
  arboost::derive_splits(
      {tree_start.data(), tree_start.size()}, {left.data(), n_nodes},
      {.width = value.shape(1), .cover = cover.data(), .value = value.data(), .gain = gain.data()});
}

using Words = Array<std::uint64_t, nb::ndim<2>>;

Owned<std::uint64_t, 2> merge_words(const Vector<bool>& is_split, const Words& of_splits,
                                    const Words& of_leaves) {
  const std::size_t n_nodes = is_split.size(), width = of_splits.shape(1);
  if (of_leaves.shape(1) != width) throw std::invalid_argument("rows of different lengths");
  if (of_splits.shape(0) + of_leaves.shape(0) != n_nodes)
    throw std::invalid_argument("other numbers of splits and leaves than nodes");
  std::vector<std::uint64_t> out(n_nodes * width);
  arboost::merge_words({reinterpret_cast<const std::uint8_t*>(is_split.data()), n_nodes},
                       {of_splits.data(), of_splits.size()}, {of_leaves.data(), of_leaves.size()},
                       width, out.data());
  return to_numpy<2>(std::move(out), {n_nodes, width});
}

}  // namespace

void bind_save(nb::module_& m) {
  m.def("pack_bits", &pack_bits, nb::arg("numbers"),
        "Bytes that hold the numbers in as few bits as the largest of each 64 needs.");
  m.def("unpack_bits", &unpack_bits, nb::arg("packed"), nb::arg("count"),
        "The numbers that `pack_bits` was given, of which there must be `count`.");
  m.def("derive_splits", &derive_splits, nb::arg("tree_start"), nb::arg("left"),
        nb::arg("cover").noconvert(), nb::arg("value").noconvert(), nb::arg("gain").noconvert(),
        "Writes cover, values and gain of the splits as they follow from those of the leaves.");
  m.def("merge_words", &merge_words, nb::arg("is_split"), nb::arg("of_splits"),
        nb::arg("of_leaves"), "Rows of all nodes, from those of the splits and of the leaves.");
}

}  // namespace arboost::bindings
