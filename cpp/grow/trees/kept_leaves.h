// Leaves of rows, kept: trees that are added to the same scores again and again are walked once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow/trees/grown_trees.h"

namespace arboost {

// The leaves of one set of rows in each tree, two bytes a row, as long as they fit 64 MB; trees
// beyond that, or of more than 2^16 nodes, are walked each time. 0.5 ns a row instead of 5 to 10.
class KeptLeaves {
 public:
  // scores += factor * the tree's values, the same bits as GrownTrees::add. All calls must be for
  // the same trees and rows.
  void add(const GrownTrees& trees, std::size_t tree, const Codes& codes, const TreeRows& rows,
           double factor, ScoreRows scores, Team& team);
  // The same for n_rows rows whose leaves `find_metric` returns.
  using Find = FunctionRef<std::vector<std::uint32_t>()>;
  void add(const GrownTrees& trees, std::size_t tree, std::size_t n_rows, Find find, double factor,
           ScoreRows scores, Team& team);

 private:
  void keep(std::size_t tree, std::vector<std::uint16_t> leaves);
  void add_kept(const GrownTrees& trees, std::size_t tree, double factor, ScoreRows scores,
                Team& team) const;
  bool keeps(const GrownTrees& trees, std::size_t tree, std::size_t n_rows);

  std::vector<std::vector<std::uint16_t>> leaves_;  // [tree]; empty: not kept
  std::size_t bytes_ = 0;
};

}  // namespace arboost
