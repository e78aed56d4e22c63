// One pass over the nodes, about 3 ns a node; single-threaded.
#include "save/check.h"

#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <string>
#include <unordered_map>
#include <vector>

namespace arboost {
namespace {

constexpr std::size_t set_words = 4;

[[noreturn]] void refuse(const char* what) {
  throw std::invalid_argument(std::string("inconsistent model: ") + what);
}

inline void require(bool holds, const char* what) {
  if (!holds) refuse(what);
}

void check_starts(std::span<const std::int64_t> start, std::size_t n_nodes) {
  require(
      !start.empty() && start.front() == 0 && start.back() == static_cast<std::int64_t>(n_nodes),
      "trees that do not hold all nodes");
  for (std::size_t t = 0; t + 1 < start.size(); ++t)
    require(start[t] < start[t + 1], "a tree without nodes");
}

// Children come after their parent, and every node but the root is the child of exactly one node:
// by induction, every node is reached from its root, and there is no cycle.
void check_links(std::span<const std::int32_t> left, std::vector<std::uint8_t>& is_child) {
  is_child.assign(left.size(), 0);
  std::size_t children = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) continue;
    require(left[i] > 0, "a negative child");
    const auto child = static_cast<std::size_t>(left[i]);
    require(child > i, "a child before its parent");
    require(child + 1 < left.size(), "a child outside its tree");
    require(!is_child[child] && !is_child[child + 1], "a lost node");
    is_child[child] = is_child[child + 1] = 1;
    children += 2;
  }
  require(children + 1 == left.size(), "a lost node");
}

// Without branches, so that the loop vectorises.
void check_finite(std::span<const double> numbers, const char* what) {
  std::uint64_t not_finite = 0;
  for (const double x : numbers) not_finite |= !(std::abs(x) <= std::numeric_limits<double>::max());
  require(not_finite == 0, what);
}

void check_numbers(const CheckedForest& forest) {
  std::uint64_t nan = 0, negative = 0;
  for (const double x : forest.trees.threshold) nan |= x != x;
  require(nan == 0, "a threshold that is not a number");
  check_finite(forest.trees.value, "a value that is not finite");
  check_finite(forest.gain, "a gain that is not finite");
  check_finite(forest.cover, "a cover that is not finite");
  for (const double x : forest.cover) negative |= x < 0;
  require(negative == 0, "a negative cover");
}

// Kind of each feature's splits, by the schema or else by its first split.
class Kinds {
 public:
  explicit Kinds(const CheckedForest& forest) : categorical_(forest.categorical) {}

  void check(std::size_t feature, bool by_set) {
    if (!categorical_.empty()) {
      require((categorical_[feature] != 0) == by_set, "sets for splits of no category");
      return;
    }
    const auto entry = seen_.try_emplace(feature, by_set).first;
    require(entry->second == by_set, "a feature that is both split by sets and by thresholds");
  }

 private:
  std::span<const std::uint8_t> categorical_;
  std::unordered_map<std::size_t, bool> seen_;
};

void check_splits(const CheckedForest& forest) {
  const Forest& trees = forest.trees;
  const std::size_t n_sets = trees.level_sets.size() / set_words;
  std::size_t sets = 0;
  Kinds kinds(forest);
  for (std::size_t i = 0; i < trees.left.size(); ++i) {
    const bool by_set = trees.level_set[i] != -1;
    require(!by_set || (sets < n_sets && trees.level_set[i] == static_cast<std::int32_t>(sets)),
            "sets of levels that are not in the order of their nodes");
    sets += by_set;
    require(!by_set || trees.left[i] != 0, "a leaf with a set of levels");
    if (trees.left[i] == 0) continue;
    const std::int32_t feature = trees.feature[i];
    require(feature >= 0 && static_cast<std::size_t>(feature) < forest.n_features,
            "a split on an unknown feature");
    if (n_sets > 0 || !forest.categorical.empty())
      kinds.check(static_cast<std::size_t>(feature), by_set);
  }
  require(sets == n_sets, "sets of levels that are not in the order of their nodes");
}

}  // namespace

void check_forest(const CheckedForest& forest) {
  const Forest& trees = forest.trees;
  check_starts(trees.tree_start, trees.left.size());
  require(trees.width == 1 || trees.width == forest.n_outputs, "leaves of another width");
  const std::size_t outputs = trees.width == 1 ? forest.n_outputs : 1;
  std::vector<std::uint8_t> is_child;
  for (std::size_t t = 0; t + 1 < trees.tree_start.size(); ++t) {
    require(trees.output[t] >= 0 && static_cast<std::size_t>(trees.output[t]) < outputs,
            "an unknown output");
    const auto begin = static_cast<std::size_t>(trees.tree_start[t]);
    const auto end = static_cast<std::size_t>(trees.tree_start[t + 1]);
    check_links(trees.left.subspan(begin, end - begin), is_child);
  }
  check_splits(forest);
  check_numbers(forest);
}

}  // namespace arboost
