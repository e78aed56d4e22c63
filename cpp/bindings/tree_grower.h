// Python's grower: a Grower with its trees and checks of arguments.
#pragma once

#include <nanobind/stl/optional.h>

#include <atomic>
#include <limits>
#include <memory>

#include "bindings/common.h"
#include "bindings/shared_table.h"
#include "grow/grower.h"
#include "grow/sample/sample.h"

namespace arboost::bindings {

using RowIds = Vector<RowId>;
using Scores = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline std::span<const RowId> checked_rows(const std::optional<RowIds>& rows, std::size_t n_rows) {
  if (!rows) return {};
  const std::span<const RowId> ids(rows->data(), rows->shape(0));
  require(!ids.empty(), "there are no rows to train on");
  for (std::size_t i = 0; i < ids.size(); ++i)
    require(ids[i] < n_rows && (i == 0 || ids[i - 1] < ids[i]),
            "rows must ascend and lie inside the table");
  return ids;
}

// Throws unless the groups are categories of the table whose order has every code once.
inline void check_groups(const GroupedFeatures& grouped, const Codes& codes) {
  for (const auto& [feature, groups] : grouped) {
    require(feature < codes.n_features && codes.has_levels(feature), "groups of no category");
    CodeSet seen;
    for (const std::uint8_t code : groups.order) put(seen, code, true);
    std::size_t n = 0;
    for (std::uint32_t code = 0; code < codes.n_bins[feature]; ++code) n += holds(seen, code);
    require(n == codes.n_bins[feature] && n == groups.order.size(),
            "groups must be in an order of all codes");
  }
}

// The parameters, if the core can grow trees of them; params.py has the ranges for users.
inline const TreeParams& checked_params(const TreeParams& p, const Codes& codes, std::size_t n_rows,
                                        std::size_t width) {
  constexpr std::size_t most_outputs = std::numeric_limits<std::int32_t>::max();
  require(n_rows > 0 && codes.n_features > 0, "a table without rows or features");
  require(width > 0 && width <= most_outputs, "a tree needs an output");
  require(p.max_depth >= 0 && p.max_leaves >= 1, "a tree needs a leaf");
  require(p.min_samples_leaf >= 0 && p.min_samples_split >= 0, "a number of rows below 0");
  for (const double x : {p.min_child_weight, p.gamma, p.min_gain_share, p.reg_lambda, p.reg_alpha,
                         p.max_delta_step, p.min_cat_weight, p.cat_smooth, p.cat_l2})
    require(x >= 0, "a weight, gain or penalty is below 0 or not a number");
  for (const double share : {p.colsample_bytree, p.colsample_bylevel, p.colsample_bynode})
    require(share > 0 && share <= 1, "a share of the features is not above 0 and at most 1");
  require(p.max_cat_to_onehot >= 0 && p.max_cat_threshold >= 1, "a number of levels below 1");
  require(p.sketch_eps > 0 && p.sketch_eps < 1, "sketch_eps is not between 0 and 1");
  require(p.monotone.empty() || p.monotone.size() == codes.n_features,
          "monotone constraints for another number of features");
  for (const auto& group : p.interactions)
    for (std::size_t i = 0; i < group.size(); ++i)
      require(group[i] < codes.n_features && (i == 0 || group[i - 1] < group[i]),
              "features of an interaction must ascend and lie inside the table");
  check_groups(p.grouped, codes);
  return p;
}

// A LeafTarget in arrays of Python, which nothing changes.
struct TargetArrays {
  TargetArrays(Array<double, nb::ndim<2>> y_, std::optional<Vector<double>> weight_)
      : y(std::move(y_)), weight(std::move(weight_)) {
    static std::atomic<std::uint64_t> n_targets{0};
    version = ++n_targets;
  }
  LeafTarget target() const { return {span_of(y), span_of(weight), version}; }

  Array<double, nb::ndim<2>> y;
  std::optional<Vector<double>> weight;
  std::uint64_t version;
};

// A grower with the trees it has grown.
struct TreeGrower {
  template <class Table>  // Codes or Ranks
  TreeGrower(const Table& codes_, std::size_t width, const TreeParams& params_,
             const std::optional<RowIds>& rows, std::shared_ptr<Workspace> shared)
      : codes(codes_),
        params(params_),
        workspace(shared ? std::move(shared) : std::make_shared<Workspace>()),
        trees(width),
        grower(codes_, checked_rows(rows, codes_.n_rows),
               checked_params(params_, codes_, codes_.n_rows, width), width, *workspace) {}
  TreeGrower(const SharedTable& table, std::size_t width, const TreeParams& params_,
             const std::optional<RowIds>& rows, std::shared_ptr<Workspace> shared)
      : codes(table.codes.local_codes),
        params(params_),
        workspace(shared ? std::move(shared) : std::make_shared<Workspace>()),
        trees(width),
        grower(table.codes, checked_rows(rows, table.codes.n_rows),
               checked_params(params_, codes, table.codes.n_rows, width), width, *workspace) {}

  std::size_t n_training() const { return grower.training_rows().n; }
  std::size_t last() const {
    require(trees.n_trees() > 0, "no tree has been grown");
    return trees.n_trees() - 1;
  }
  // The last tree is the one that was grown last, whose rows are known.
  void check_last_is_grown() const {
    require(has_leaves, "the last tree's rows are not known: it was not the last one to grow");
  }
  // The same where the leaves of the training rows are asked for in this process.
  std::size_t last_with_leaves() const {
    check_last_is_grown();
    require(!sample || !sample->on_device, "the last tree's rows are known to its device only");
    return last();
  }
  void check_gradients(const Gradients& gradients, std::size_t output) const {
    require(gradients.is_filled || gradients.device_pairs != nullptr,
            "the gradients have not been computed");
    require(gradients.n_rows == n_training() && output < gradients.outputs &&
                (trees.width == 1 || (gradients.outputs == trees.width && gradients.by_row)) &&
                (trees.width > 1 || gradients.outputs == 1 || !gradients.by_row),
            "these gradients do not fit the grower's table and outputs");
  }
  void check_target(const TargetArrays& target) const {
    require(target.y.shape(0) == n_training() && target.y.shape(1) == trees.width &&
                (!target.weight || target.weight->shape(0) == n_training()),
            "these numbers do not fit the grower's table and outputs");
  }
  void check_scores(const Scores& scores, std::size_t n_rows, std::size_t output) const {
    require(scores.shape(0) == n_rows && output + trees.width <= scores.shape(1),
            "these scores do not fit the grower's table and outputs");
  }
  Team team(std::size_t cells, int n_threads) const {
    return Team(threads_for(cells, n_threads), [this] {
      if (stopped) throw std::runtime_error("the grower was stopped");
      poll_python();
    });
  }

  const Codes& codes;  // of the rows in this process
  TreeParams params;
  std::shared_ptr<Workspace> workspace;
  GrownTrees trees;
  Grower grower;
  std::shared_ptr<const Sample> sample;  // of the tree that `grow` has grown last; null: all rows
  std::unique_ptr<Gradients> part_gradients;  // of trees in parts
  bool has_leaves = false;                    // the grower has grown the last tree, and none since
  std::atomic<bool> stopped{false};
};

// Trees as arrays, and back (bindings/trees.cpp).
nb::dict trees(const TreeGrower& self);
void restore(TreeGrower& self, const nb::dict& arrays);
nb::dict last_tree(const TreeGrower& self);
void bind_gathering(nb::module_& m);
void bind_added_trees(nb::class_<TreeGrower>& grower);

// Rounds of boosting (bindings/rounds.cpp).
void bind_rounds(nb::module_& m);

}  // namespace arboost::bindings
