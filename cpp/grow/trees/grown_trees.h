// Grown trees: flat arrays with splits by code, and walks over binned tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "table/codes.h"
#include "tree/rule.h"
#include "tree/tree_rows.h"

namespace arboost {

// Scores of rows: those of one row lie together, `stride` from one row's to the next.
struct ScoreRows {
  double* scores;
  std::size_t stride;
};

// Trees in flat arrays, one after the other. Node 0 of a tree is its root; an inner node's children
// are left and left + 1, both after their parent; a leaf has left = 0.
struct GrownTrees {
  explicit GrownTrees(std::size_t width_) : width(width_), tree_start{0} {}

  std::size_t width;                     // numbers in a leaf
  std::vector<std::int64_t> tree_start;  // [n_trees + 1]
  std::vector<std::int32_t> feature;
  std::vector<std::int32_t> bin;  // left are codes <= bin
  std::vector<std::int32_t> left;
  std::vector<std::uint8_t> default_left;
  // By set of levels instead: the sets, in the order of their nodes, and which one a node has, or
  // -1. A set decides on all codes; those that are not levels of the feature follow default_left.
  std::vector<std::int32_t> set;
  std::vector<CodeSet> sets;
  std::vector<double> value;  // [n_nodes][width], learning rate included
  std::vector<double> gain;
  std::vector<double> cover;  // sum of hessians, mean over the outputs

  std::size_t n_trees() const { return tree_start.size() - 1; }
  std::size_t first(std::size_t tree) const { return static_cast<std::size_t>(tree_start[tree]); }
  std::size_t n_nodes(std::size_t tree) const { return first(tree + 1) - first(tree); }
  const double* values(std::size_t tree) const { return value.data() + first(tree) * width; }
  double* values(std::size_t tree) { return value.data() + first(tree) * width; }

  // Finds the leaves of rows of codes that were made with the same edges, and calls
  // use(begin, end, leaves) for numbers [begin, end) of the rows, from several threads.
  using UseLeaves = FunctionRef<void(std::size_t, std::size_t, const std::uint32_t*)>;
  void walk(std::size_t tree, const Codes& codes, const TreeRows& rows, Team& team,
            UseLeaves use) const;

  // scores += factor * the tree's values, for such rows.
  void add(std::size_t tree, const Codes& codes, const TreeRows& rows, double factor,
           ScoreRows scores, Team& team) const;
  // The same for rows whose leaves are known.
  void add_leaves(std::size_t tree, std::span<const std::uint32_t> leaves, double factor,
                  ScoreRows scores, Team& team) const;

  // Replaces a tree's values, [node][width]. Under monotone constraints, values are clipped so that
  // the tree satisfies them: where leaves on the two sides of a constrained split violate the
  // order, both sides are clipped at the midpoint between the extreme violating values.
  void set_values(std::size_t tree, std::span<const double> values,
                  std::span<const std::int8_t> monotone);

  // Reserves memory for one more tree of n nodes, or for all expected trees once the mean size is
  // known.
  void make_room(std::size_t n);
  std::size_t expected = 0;  // trees

  // Calls use(array, numbers of a node) for the arrays by node.
  template <class Use>
  void each_array(Use use) {
    use(feature, std::size_t{1});
    use(bin, std::size_t{1});
    use(left, std::size_t{1});
    use(default_left, std::size_t{1});
    use(set, std::size_t{1});
    use(value, width);
    use(gain, std::size_t{1});
    use(cover, std::size_t{1});
  }
  // Room for n nodes in all trees; the values of new ones are 0.
  void resize(std::size_t n) {
    each_array([n](auto& array, std::size_t numbers) { array.resize(n * numbers); });
  }

  // Removes the last tree.
  void drop_last();
  // Keeps the first trees and sets, and removes all others; the last tree may be incomplete.
  void keep(std::size_t n_trees, std::size_t n_sets);

  // Throws std::invalid_argument unless every walk over codes of this kind ends in a leaf.
  void validate(const Codes& codes) const;
};

}  // namespace arboost
