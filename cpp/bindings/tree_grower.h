// Python's grower: a Grower with its trees and checks of arguments.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "bindings/common.h"
#include "grow/grower.h"

namespace arboost::bindings {

using RowIds = Vector<RowId>;
using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

inline std::span<const RowId> checked_rows(const std::optional<RowIds>& rows, const Codes& codes) {
  if (!rows) return {};
  const std::span<const RowId> ids(rows->data(), rows->shape(0));
  require(!ids.empty(), "there are no rows to train on");
  for (std::size_t i = 0; i < ids.size(); ++i)
    require(ids[i] < codes.n_rows && (i == 0 || ids[i - 1] < ids[i]),
            "rows must ascend and lie inside the table");
  return ids;
}

// A grower with the trees it has grown.
struct TreeGrower {
  template <class Table>  // Codes or Ranks
  TreeGrower(const Table& codes_, std::size_t width, const TreeParams& params_,
             const std::optional<RowIds>& rows, std::shared_ptr<Workspace> shared)
      : codes(codes_),
        params(params_),
        workspace(shared ? std::move(shared) : std::make_shared<Workspace>()),
        trees(width),
        grower(codes_, checked_rows(rows, codes_), params_, width, *workspace) {}

  std::size_t n_training() const { return grower.training_rows().n; }
  std::size_t last() const {
    require(trees.n_trees() > 0, "no tree has been grown");
    return trees.n_trees() - 1;
  }
  // The same where the leaves of the training rows are asked for: those of the tree grown last.
  std::size_t last_with_leaves() const {
    require(has_leaves, "the last tree's rows are not known: it was not the last one to grow");
    return last();
  }
  void check_gradients(const Gradients& gradients, std::size_t output) const {
    require(gradients.n_rows == n_training() && output < gradients.outputs &&
                (trees.width == 1 || (gradients.outputs == trees.width && gradients.by_row)) &&
                (trees.width > 1 || gradients.outputs == 1 || !gradients.by_row),
            "these gradients do not fit the grower's table and outputs");
  }
  void check_scores(const Scores& scores, std::size_t n_rows, std::size_t output) const {
    require(scores.shape(0) == n_rows && output + trees.width <= scores.shape(1),
            "these scores do not fit the grower's table and outputs");
  }
  Team team(std::size_t cells, int n_threads) const {
    return Team(threads_for(cells, n_threads), python_poll());
  }

  const Codes& codes;
  TreeParams params;
  std::shared_ptr<Workspace> workspace;
  GrownTrees trees;
  Grower grower;
  std::shared_ptr<const Sample> sample;  // of the tree that was grown last; null: all rows
  bool has_leaves = false;               // the grower has grown the last tree, and none since
};

// Trees as arrays, and back (bindings/trees.cpp).
nb::dict trees(const TreeGrower& self);
void restore(TreeGrower& self, const nb::dict& arrays);
nb::dict last_tree(const TreeGrower& self);
void bind_gathering(nb::module_& m);

}  // namespace arboost::bindings
