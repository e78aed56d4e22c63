// Rows of a binned table -> leaves of a grown tree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/parallel.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/trees/grown_trees.h"
#include "table/codes.h"
#include "tree/bits/bit_program.h"
#include "tree/tree_rows.h"

namespace arboost {

class TreeWalk {
 public:
  // The rows ascend.
  TreeWalk(const GrownTrees& forest, std::size_t tree, const Codes& codes, const TreeRows& rows);

  // Calls use(begin, end, leaves) for numbers [begin, end) of the rows, from several threads.
  void run(Team& team, GrownTrees::UseLeaves use) const;

 private:
  static constexpr std::uint32_t in_memory = ~std::uint32_t{0};

  void add_column(std::size_t node, std::uint32_t feature);
  bool pays_together() const;
  void make_program(const std::int32_t* features);
  void read_by_row();
  WalkArgs args_of(const WalkNode* nodes, const TreeRows& rows) const;
  void walk(const RowWindow& window, std::size_t begin, std::size_t end,
            std::uint32_t* leaves) const;
  void walk_stored(const RowWindow& window, std::size_t begin, std::size_t end,
                   std::uint32_t* leaves) const;
  template <class Code>
  void copy_rows(const RowWindow& window, std::size_t first, std::size_t n,
                 std::uint8_t* columns) const;
  void walk_sparse(std::size_t begin, std::size_t end, std::uint32_t* leaves) const;
  template <class Code>
  void expand(std::size_t row, std::size_t n_rows, std::vector<std::uint8_t>& columns,
              std::vector<WalkNode>& nodes) const;

  const Codes& codes_;
  TreeRows rows_;
  std::vector<WalkNode> nodes_;
  std::size_t stride_;  // bytes from the code of a row to that of the next
  std::vector<CodeSet> sets_;
  // Codes that are copied to columns before a walk: sparse features or, of a table in a file,
  // stored columns.
  std::vector<std::uint32_t> sources_;
  std::vector<std::uint32_t> source_of_;  // by node: number of its source, or in_memory
  std::vector<std::uint32_t> splits_;     // nodes that are no leaves
  // Of a tree whose rows walk together; else empty.
  std::vector<std::uint32_t> steps_, leaves_;
  BitProgram program_{};
};

}  // namespace arboost
