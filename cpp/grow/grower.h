// Codes and gradients -> a tree, and the leaf of each row.
//
// Node by node: take the best open node, partition its rows, build the smaller child's histogram,
// subtract it from the parent's for the larger child, search both for their best splits, and push
// them to the queue. Ranks have no histograms (grow/rows/sorted_columns.h), or those of bins
// proposed for a round (bin/propose.h). Threads expand several nodes concurrently, and split the
// rows of large nodes. Sums are exact integers and nodes are committed in one order, so the tree
// does not depend on the threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/parallel.h"
#include "bin/propose.h"
#include "bin/rank.h"
#include "grow/queue.h"
#include "grow/rows/absolute.h"
#include "grow/rows/feature_sums.h"
#include "grow/rows/histograms.h"
#include "grow/rows/purity.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/sorted_columns.h"
#include "grow/sample/column_sampler.h"
#include "grow/subtree.h"
#include "grow/trees/grown_trees.h"
#include "grow/trees/tree_params.h"
#include "loss/apply.h"
#include "table/codes.h"

namespace arboost {

// Request for one tree.
struct TreeRequest {
  std::uint64_t seed, number;  // random choices are hashes of the fit's seed and the tree's number
  std::uint64_t turn;          // among equal splits, features from this one on come first
  double rate;                 // values are multiplied by it
  const Sample* sample;        // rows it is grown on; null: all training rows
  bool leaves_from_all_rows;   // leaf values come from all training rows
};

class Grower {
 public:
  // `width` outputs share each tree: 1, or all of them for vector leaves. `table_rows` are the
  // training rows among those of the codes, ascending; empty for all of them. Growers may share a
  // workspace if each finishes a tree, and the use of its leaves, before another starts one.
  Grower(const Codes& codes, std::span<const RowId> table_rows, const TreeParams& params,
         std::size_t width, Workspace& workspace);
  // On ranks, with split candidates other than bins. The bins of trees are ranks then.
  Grower(const Ranks& ranks, std::span<const RowId> table_rows, const TreeParams& params,
         std::size_t width, Workspace& workspace);

  // With candidates per round: proposes bins for the hessians of all training rows. Call before the
  // first tree of a round; without effect for other candidates.
  void propose(const Gradients& gradients, Team& team);

  // Appends one tree for `output` (0 for vector leaves) to the forest.
  void grow(const Gradients& gradients, std::size_t output, const TreeRequest& request,
            GrownTrees& forest, Team& team);

  // Of the last tree: the leaf of each of its rows, by number; the rows; and the sums
  // [node][output][g, h] of gradients over them.
  std::uint32_t leaf_of(std::size_t i) const { return space_.leaf_of_row[rows_.rows().row(i)]; }
  const TreeRows& rows() const { return rows_.rows(); }
  TreeRows training_rows() const { return rows_.training_rows(); }
  std::vector<double> sums(const Gradients& gradients, std::size_t output, Team& team);

  // scores[position * outputs + output ...] += the last tree's values, for all training rows.
  void add_last(const GrownTrees& forest, std::size_t output, std::size_t outputs, double* scores,
                Team& team) const;

 private:
  Grower(const Codes& codes, const Ranks* ranks, std::span<const RowId> table_rows,
         const TreeParams& params, std::size_t width, Workspace& workspace);

  // Splits of features with few values that are scored at once.
  static constexpr std::size_t most_candidates = 1024;

  struct Found {           // the best split among some features
    std::int32_t feature;  // -1: none
    FeatureSplit split;
    std::vector<std::int64_t> left_sums;
  };
  struct Scratch {  // of one member; kept from node to node for its memory
    Scratch(std::size_t max_bins, std::size_t channels) : split(max_bins, channels) {}
    SplitScratch split;
    std::unique_ptr<FeatureSums> sums;  // null: every feature has a stored column of its own
    std::vector<std::int64_t> values, room;
    std::vector<std::uint32_t> candidates;  // features of the splits that are scored at once
    std::vector<Found> found;
    ColumnSampler::Room columns;
    AbsoluteNode errors;  // absolute errors: of the node that is searched,
    AbsoluteSide side;    // ... and of a split's sides
    std::vector<Element> ordered;
    std::vector<std::size_t> places;
    Subtrees subtrees;
    GrowNode view;  // a node of a subtree, for searches that have no kernel
  };
  struct Placed {              // a node in its place in the tree
    const GrowNode* node;      // the node itself, or the one that its subtree began with
    const SubtreeNode* below;  // the node, where it is of a subtree

    double gain() const { return below != nullptr ? below->gain : node->gain; }
  };

  void start_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                  Team& team);
  void check_criterion() const;
  void check_targets() const;
  void start_gain();
  void start_root(Team& team);
  void work(int member, Team& team);
  GrowNode* next_node(int member, Team& team);
  void expand(GrowNode& node, int member, Team& team);
  void evaluate_children(GrowNode& node, int member, Team& team);
  void evaluate_sorted(GrowNode& node, int member, Team& team);
  void evaluate(GrowNode& node, int member, Team& team);
  void open_sums(const GrowNode& node, Scratch& own);
  const std::int64_t* own_slots(const GrowNode& node, std::size_t feature) const;
  void search(const GrowNode& node, std::span<const std::uint32_t> features, const Scratch& own,
              Scratch& scratch, Found& best) const;
  FeatureSplit find_split(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                          const Scratch& own, double floor, Scratch& scratch) const;
  template <class Use>
  void each_sum(const GrowNode& node, std::uint32_t feature, const Scratch& own, Scratch& scratch,
                Use use) const;
  bool varies(const GrowNode& node, std::uint32_t feature, Scratch& own) const;
  struct CutRange {
    std::uint32_t low, high;  // lowest and highest code of values; low is that of missing: none
    bool missing;
    CodeSet seen;  // of a category
  };
  void set_cut_values();
  bool cuts_rows(const GrowNode& node, std::uint32_t feature) const;
  CutRange cut_range(const GrowNode& node, std::uint32_t feature, const Scratch& own,
                     Scratch& scratch) const;
  void sum_cut(const GrowNode& node, std::uint32_t feature, const FeatureSplit& cut,
               const Scratch& own, Scratch& scratch) const;
  std::size_t best_of_cut(const GainParams& p, const GrowNode& node, std::size_t n, double floor,
                          SplitScratch& split) const;
  FeatureSplit find_cut(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                        const Scratch& own, double floor, Scratch& scratch) const;
  template <class Use>
  void each_row(const GrowNode& node, std::uint32_t feature, Use use) const;
  const Element* in_order(const GrowNode& node, std::uint32_t feature, Scratch& scratch) const;
  bool allows(const AbsoluteSide& side, std::size_t n_rows) const;
  FeatureSplit find_absolute(const GrowNode& node, std::uint32_t feature, const Scratch& own,
                             double floor, Scratch& scratch) const;
  std::size_t score_cut(const GrowNode& node, std::uint32_t feature, const FeatureSplit& cut,
                        std::size_t n_candidates, const Scratch& own, double floor,
                        Scratch& scratch) const;
  void search_further(const GrowNode& node, std::span<const std::uint32_t> drawn, Scratch& own,
                      Found& found);
  bool is_scored_with_others(std::uint32_t feature) const;
  void score_candidates(const GainParams& p, const GrowNode& node, Scratch& scratch,
                        Found& best) const;
  std::int64_t apart(const GrowNode& node) const;
  double floor_of(const std::int64_t* sums, double score) const;
  bool is_heavier(const std::int64_t* left_sums, const std::int64_t* sums) const;
  std::uint32_t middle_bin(std::size_t feature, std::uint32_t bin, std::uint32_t next) const;
  std::uint32_t next_code(const GrowNode& node, Scratch& own) const;
  void bound_children(GrowNode& node) const;
  GainParams gain_of(const GrowNode& node) const;
  void commit(GrowNode& node);
  void forget_histogram(GrowNode& node);
  bool may_split(const GrowNode& node) const {
    return may_split(node.depth, node.n_rows(), node.sums.data()) &&
           !(purity_ && purity_->is_pure(rows_.elements(node), node.n_rows()));
  }
  bool may_split(std::int64_t depth, std::size_t n_rows, const std::int64_t* sums) const;
  bool is_small(const GrowNode& node) const { return node.n_rows() <= small_rows_; }
  void make_children(GrowNode& node, std::size_t n_left);
  GrowNode& new_node(std::size_t begin, std::size_t end, int buffer, std::int64_t depth);
  double node_score(const GrowNode& node) const;
  double node_score(const std::int64_t* sums) const;  // without bounds

  // Whole subtrees of small nodes.
  void set_tables();
  FewRows few_rows(const Element* elements, std::size_t n, const std::int64_t* totals,
                   const Scratch& own) const;
  std::size_t subtree_rows(int n_threads) const;
  bool grow_if_small(GrowNode& node, int member) {
    return node.n_rows() <= subtree_rows_ && grow_subtree(node, member);
  }
  bool grow_subtree(GrowNode& root, int member);
  void open_in_subtree(Subtrees& trees, std::size_t number, std::int64_t depth, std::uint64_t path,
                       const std::int64_t* sums);
  bool search_in_subtree(Scratch& own, const Subtrees::Open& at, int buffer);
  bool is_pure(const Element* elements, std::size_t n, const std::int64_t* values) const;
  bool cut_in_subtree(const FewRows& rows, std::span<const std::uint32_t> features,
                      std::uint64_t path, Scratch& own, NodeSplit& best);
  void search_as_node(Scratch& own, const Subtrees::Open& at, int buffer,
                      std::span<const std::uint32_t> features, NodeSplit& best);
  void split_in_subtree(Scratch& own, const Subtrees::Open& at, int buffer);

  // Order of all nodes in the tree.
  struct SplitOf {
    std::int32_t feature;
    std::uint32_t bin;
    bool missing_left;
    double gain;
    const CodeSet* set;  // null: by bin
  };
  SplitOf split_of(const Placed& placed) const;
  Placed place(const GrowNode* node) const;
  void place_children(std::size_t id);
  void order_nodes();

  // The finished tree: its splits, the leaf of each row, exact sums of its nodes, and values.
  void finish_tree(const Gradients& gradients, std::size_t output, const TreeRequest& request,
                   GrownTrees& forest, Team& team);
  void append_splits(GrownTrees& forest) const;
  std::int32_t table_bin(std::size_t feature, std::uint32_t bin) const;
  void assign_leaves(Team& team);
  class NodeSums;
  std::vector<std::int64_t> node_sums(const TreePairs& pairs, Team& team) const;
  std::vector<std::int64_t> walked_sums(const TreePairs& pairs, const GrownTrees& forest,
                                        Team& team);
  void set_values(const std::vector<std::int64_t>& sums, double rate, GrownTrees& forest) const;

  const Codes& table_;                  // table that splits refer to
  std::unique_ptr<Proposal> proposal_;  // candidates for each round, else null
  Buffer<std::uint32_t> hessians_;      // of the proposal, by row of the table
  const Codes& codes_;                  // codes to grow on: of the proposal, or the table
  TreeParams params_;
  Workspace& space_;
  std::size_t width_, channels_, small_rows_;
  // For features of shared columns: maps from stored codes to their own codes, and the map of each.
  std::vector<std::uint8_t> decoded_;
  std::vector<const std::uint8_t*> tables_;
  std::size_t subtree_rows_ = 0;  // up to so many rows, one thread grows the subtree
  RowPartition rows_;
  std::unique_ptr<Purity> purity_;          // null: purity is not tested
  bool values_tell_purity_ = false;         // exact values suffice to test purity
  std::unique_ptr<AbsoluteRows> absolute_;  // null: scores come from sums
  std::unique_ptr<SortedColumns> sorted_;   // all values, or candidates for each node, else null
  Histograms histograms_;
  ColumnSampler columns_;
  GainParams gain_{};
  double score_unit_ = 1;  // real value of one unit of score
  // Random thresholds: the tree's key, and the values that represent each feature's bins.
  std::uint64_t cut_key_ = 0;
  std::vector<double> bin_values_;
  std::vector<const double*> cut_values_;
  double min_gain_ = 0;                            // lower bound of a split's gain, in units
  std::vector<std::unique_ptr<Scratch>> scratch_;  // [member]

  // Of the tree that is growing; guarded by mutex_ while threads work on it.
  std::mutex mutex_;
  GrowQueue queue_;
  std::deque<GrowNode> nodes_;  // used again for the next tree
  std::size_t n_nodes_ = 0;
  std::size_t n_expanding_ = 0;  // nodes that threads are expanding
  std::vector<GrowNode*> tree_;  // by id
  // Of the tree that has grown, by id: its nodes, and their left children or 0.
  std::vector<Placed> placed_;
  std::vector<std::int32_t> left_;
  std::atomic<bool> failed_{false};
};

}  // namespace arboost
