// Bindings of the grower: one object that grows trees on one binned table.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>

#include "bindings/common.h"
#include "grow/grower.h"
#include "random.h"

namespace arboost::bindings {
namespace {

// A grower with the trees it has grown.
struct TreeGrower {
  TreeGrower(const Codes& codes, std::size_t width, const TreeParams& params)
      : n_rows(codes.n_rows),
        n_features(codes.n_features),
        trees(width),
        grower(codes, params, width) {}

  std::size_t n_rows, n_features;
  GrownTrees trees;
  Grower grower;
};

void grow(TreeGrower& self, const Gradients& gradients, std::size_t output, std::uint64_t seed,
          std::uint64_t round, double rate, int n_threads) {
  const bool all_outputs = self.trees.width > 1;
  if (gradients.n_rows != self.n_rows || output >= gradients.outputs ||
      (all_outputs && (gradients.outputs != self.trees.width || !gradients.by_row)))
    throw std::invalid_argument("these gradients do not fit the grower's table and outputs");
  nb::gil_scoped_release release;
  const auto bits = counter_hash(seed, Purpose::gradient_rounding, round, output);
  Team team(threads_for(self.n_rows * self.n_features, n_threads), python_poll());
  self.grower.grow(gradients, output, static_cast<std::uint32_t>(bits), rate, self.trees, team);
}

void add_leaves(TreeGrower& self, nb::ndarray<double, nb::ndim<2>, nb::c_contig> scores,
                std::size_t output, int n_threads) {
  const std::size_t outputs = scores.shape(1);
  const GrownTrees& trees = self.trees;
  if (scores.shape(0) != self.n_rows || output + trees.width > outputs ||
      trees.tree_start.size() < 2)
    throw std::invalid_argument("these scores do not fit the grower's table and outputs");
  const auto start = static_cast<std::size_t>(trees.tree_start[trees.tree_start.size() - 2]);
  nb::gil_scoped_release release;
  Team team(threads_for(4 * self.n_rows, n_threads), python_poll());
  arboost::add_leaves(self.grower.leaf_of_row(), trees.value.data() + start * trees.width,
                      trees.width, output, self.n_rows, outputs, scores.data(), team);
}

template <class T>
nb::object copy_of(const std::vector<T>& values) {
  auto* copy = new std::vector<T>(values);
  nb::capsule owner(copy, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(copy->data(), {copy->size()}, owner));
}

nb::dict trees(const TreeGrower& self) {
  nb::dict result;
  result["tree_start"] = copy_of(self.trees.tree_start);
  result["feature"] = copy_of(self.trees.feature);
  result["bin"] = copy_of(self.trees.bin);
  result["left"] = copy_of(self.trees.left);
  result["default_left"] = copy_of(self.trees.default_left);
  result["value"] = copy_of(self.trees.value);
  result["gain"] = copy_of(self.trees.gain);
  result["cover"] = copy_of(self.trees.cover);
  return result;
}

}  // namespace

void bind_grow(nb::module_& m) {
  nb::class_<TreeParams>(m, "TreeParams", "How a tree is grown.")
      .def(
          "__init__",
          [](TreeParams* self, std::optional<std::int64_t> max_depth,
             std::optional<std::int64_t> max_leaves, bool best_first, double min_child_weight,
             std::int64_t min_samples_leaf, double gamma, double reg_lambda, double reg_alpha,
             double max_delta_step, std::size_t histogram_bytes) {
            new (self) TreeParams{.max_depth = max_depth.value_or(TreeParams::unlimited),
                                  .max_leaves = max_leaves.value_or(TreeParams::unlimited),
                                  .best_first = best_first,
                                  .min_child_weight = min_child_weight,
                                  .min_samples_leaf = min_samples_leaf,
                                  .gamma = gamma,
                                  .reg_lambda = reg_lambda,
                                  .reg_alpha = reg_alpha,
                                  .max_delta_step = max_delta_step,
                                  .histogram_bytes = histogram_bytes};
          },
          nb::kw_only(), nb::arg("max_depth").none(), nb::arg("max_leaves").none(),
          nb::arg("best_first"), nb::arg("min_child_weight"), nb::arg("min_samples_leaf"),
          nb::arg("gamma"), nb::arg("reg_lambda"), nb::arg("reg_alpha"), nb::arg("max_delta_step"),
          nb::arg("histogram_bytes") = TreeParams{}.histogram_bytes);
  nb::class_<TreeGrower>(m, "Grower", "Grows trees on one binned table, and keeps them.")
      .def(nb::init<const Codes&, std::size_t, const TreeParams&>(), nb::arg("codes"),
           nb::arg("width"), nb::arg("params"), nb::keep_alive<1, 2>())
      .def("grow", &grow, nb::arg("gradients"), nb::arg("output"), nb::arg("seed"),
           nb::arg("round"), nb::arg("rate"), nb::arg("n_threads"),
           "Grows one tree for one output, or for all with vector leaves.")
      .def("add_leaves", &add_leaves, nb::arg("scores").noconvert(), nb::arg("output"),
           nb::arg("n_threads"), "Adds the last tree's leaf values to the rows' scores.")
      .def(
          "leaf_of_row",
          [](const TreeGrower& self) {
            const std::uint32_t* leaf = self.grower.leaf_of_row();
            return copy_of(std::vector<std::uint32_t>(leaf, leaf + self.n_rows));
          },
          "The leaf of the last tree that each row ended in.")
      .def("trees", &trees, "All trees grown so far, as flat arrays.");
}

}  // namespace arboost::bindings
