// Bindings of steps of rounds on a device, one by one.
#include <algorithm>

#include "bindings/tree_grower.h"
#include "grow/device/device_rows.h"
#include "loss/leaf.h"

namespace arboost::bindings {
namespace {

cuda::DeviceRound& round_of(TreeGrower& self) {
  cuda::DeviceRows* device = self.grower.on_device();
  require(device != nullptr && device->round().is_current(), "no scores on a device");
  return device->round();
}

double unit_of(const std::optional<Vector<double>>& weight) {
  if (!weight) return 1;
  const std::span<const double> weights(weight->data(), weight->size());
  return weight_scale(*std::max_element(weights.begin(), weights.end()), weights.size());
}

}  // namespace

std::vector<cuda::AddedTree> added_trees(const TreeGrower& self, const Vector<std::uint32_t>& trees,
                                         const Vector<double>& factors,
                                         const Vector<std::uint32_t>& outputs, std::size_t n) {
  require(factors.size() == trees.size() && outputs.size() == trees.size(),
          "trees, factors and outputs differ in number");
  std::vector<cuda::AddedTree> added;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    require(trees.data()[i] < self.trees.n_trees() && outputs.data()[i] + self.trees.width <= n,
            "the tree does not exist, or does not fit the outputs");
    added.push_back({trees.data()[i], outputs.data()[i], factors.data()[i]});
  }
  return added;
}

void bind_device_steps(nb::class_<TreeGrower>& grower) {
  grower
      .def(
          "refit_on_device",
          [](TreeGrower& self, std::size_t output, double alpha, std::optional<double> delta,
             const std::optional<Vector<double>>& weight) {
            const std::size_t n_nodes = self.trees.n_nodes(self.last());
            return to_numpy(
                round_of(self).refit_leaves(output, {alpha, delta}, unit_of(weight), n_nodes));
          },
          nb::arg("output"), nb::arg("alpha"), nb::arg("delta").none(), nb::arg("weight").none(),
          "As `refit_leaves`, for the last tree and the scores on the device.")
      .def(
          "huber_delta",
          [](TreeGrower& self, double alpha, const std::optional<Vector<double>>& weight) {
            return round_of(self).huber_delta(alpha, unit_of(weight));
          },
          nb::arg("alpha"), nb::arg("weight").none(),
          "Delta of Huber's loss at the scores on the device.")
      .def(
          "add_on_device",
          [](TreeGrower& self, const Vector<std::uint32_t>& trees, const Vector<double>& factors,
             const Vector<std::uint32_t>& outputs) {
            cuda::DeviceRound& round = round_of(self);
            const auto added = added_trees(self, trees, factors, outputs, round.outputs());
            GilRelease release;
            round.add(self.trees, added);
          },
          nb::arg("trees"), nb::arg("factors"), nb::arg("outputs"),
          "Adds trees in turn, each times its factor to its output, to the scores on the device.");
}

}  // namespace arboost::bindings
