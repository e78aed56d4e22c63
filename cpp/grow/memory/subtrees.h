// Subtrees of small nodes, each grown at once by one thread: its rows stay in the cache, and no
// node passes the queue. The same searches, draws and rules as for other nodes, so the same splits.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grow/kernels/grow_kernels.h"
#include "grow/memory/row_block.h"
#include "grow/policy/tree_policy.h"
#include "grow/policy/tree_shape.h"
#include "grow/rows/purity.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/workspace.h"
#include "grow/split/split_search.h"

namespace arboost {

class Subtrees {
 public:
  // `purity` is null where purity is not tested.
  Subtrees(const Codes& codes, TreePolicy& policy, SplitSearch& search, const RowPartition& rows,
           const Purity* purity, Workspace& workspace);

  // Starts a tree whose nodes of at most `most_rows` rows are grown as subtrees; 0: none are.
  void start_tree(std::size_t most_rows, bool values_tell_purity, int n_members);
  std::size_t most_rows() const { return most_rows_; }

  // Grows the subtree of a small node. False, without effect, for larger nodes, and if some row has
  // zero weight: only the general search handles such rows. Ends early once `failed`, which another
  // member has set: the tree is given up.
  bool grow_if_small(GrowNode& node, int member, const std::atomic<bool>& failed, Team& team) {
    return node.n_rows() <= most_rows_ && grow(node, member, failed, team);
  }

  // By member; empty: the tree has no subtrees.
  std::span<const SubtreeNodes* const> grown() const { return grown_; }

 private:
  struct Open {  // a node that is still to be split
    std::uint32_t node;
    std::int64_t depth;
    std::uint64_t path;
  };
  struct Member {  // subtrees of one member, and its scratch memory
    SubtreeNodes trees;
    std::vector<Open> open;
    std::vector<std::int64_t> open_sums;        // [open][channels]
    std::vector<std::int64_t> sums, left_sums;  // of the node that is being split
    std::vector<Element> spare;                 // room for the rows of a split
    RowBlock block;
    GrowNode view;  // a node, for searches that have no kernel
  };

  bool grow(GrowNode& root, int member, const std::atomic<bool>& failed, Team& team);
  void open(Member& worker, std::size_t number, std::int64_t depth, std::uint64_t path,
            const std::int64_t* sums);
  bool find(Member& worker, SplitSearch::Scratch& scratch, const Open& at, int buffer);
  FewRows rows_of(Member& worker, SplitSearch::Scratch& scratch, const Open& at, int buffer);
  bool has_block(std::size_t n_rows) const {
    return layout_.fits(channels_) && n_rows <= RowBlock::most_rows;
  }
  bool is_pure(const FewRows& rows) const;
  bool cut(const FewRows& rows, std::span<const std::uint32_t> features, std::uint64_t path,
           SplitSearch::Scratch& scratch, NodeSplit& best);
  void search_as_node(Member& worker, SplitSearch::Scratch& scratch, const Open& at, int buffer,
                      std::span<const std::uint32_t> features, double score, NodeSplit& best);
  void split(Member& worker, const Open& at, int buffer);

  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  SplitSearch& search_;
  const RowPartition& rows_;
  const RowLayout layout_;
  const Purity* purity_;
  Workspace& space_;
  std::size_t width_, channels_;
  std::size_t most_rows_ = 0;
  bool values_tell_purity_ = false;  // exact values suffice to test purity
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<const SubtreeNodes*> grown_;
};

}  // namespace arboost
