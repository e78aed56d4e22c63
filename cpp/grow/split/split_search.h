// Search of a node's best split, from one of three sources (grow/split/sources.h): a histogram, the
// codes of few rows, or rows sorted by each feature. Parallel over features for large nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "grow/policy/tree_policy.h"
#include "grow/rows/absolute.h"
#include "grow/rows/feature_sums.h"
#include "grow/rows/histograms.h"
#include "grow/rows/leaf_sizes.h"
#include "grow/rows/row_partition.h"
#include "grow/rows/sorted_columns.h"

namespace arboost {

class SplitSearch {
 public:
  // The best split among some features.
  struct FeatureBest {
    std::int32_t feature;  // -1: none
    FeatureSplit split;
    std::vector<std::int64_t> left_sums;
  };
  // The best split of one feature: its gain, and that over the entropy of the two sides' weights.
  struct FeatureRatio {
    double gain, ratio;  // the gain is below 0 where there is no split
  };
  struct Scratch {  // of one member; kept from node to node for its memory
    Scratch(std::size_t max_bins, std::size_t channels) : split(max_bins, channels) {}
    SplitScratch split;
    std::unique_ptr<FeatureSums> sums;  // null: every feature has a stored column of its own
    std::vector<std::int64_t> values, buffer;
    std::vector<std::int64_t> counts, counted;  // of codes: rows, and sums with rows
    std::vector<std::uint32_t> candidates;      // features of the splits that are scored at once
    std::vector<FeatureBest> best_of_chunks;
    ColumnSampler::Scratch columns;
    std::vector<std::uint32_t> own_features;  // of the drawn ones
    std::vector<FeatureRatio> ratios;
    AbsoluteNode errors;  // absolute errors: of the node that is searched,
    AbsoluteSide side;    // ... and of a split's sides
    std::vector<Element> ordered;
    std::vector<std::size_t> places;
  };

  // Rows of the tree, and their form. All must outlive the search.
  struct Sources {
    const RowPartition& rows;
    const Histograms& histograms;
    const LeafSizes& sizes;
    const SortedColumns* sorted = nullptr;  // all values, or candidates for each node
    AbsoluteRows* absolute = nullptr;       // null: scores come from sums
  };

  SplitSearch(const Codes& codes, TreePolicy& policy, const Sources& sources);

  void start_tree(int n_members);
  Scratch& scratch(int member) { return *scratch_[static_cast<std::size_t>(member)]; }

  // Sets the node's best split over all features: the highest gain, then the first feature in turn.
  // `is_own` has 1 for features to search, where others are searched elsewhere or not at all.
  void find(GrowNode& node, int member, Team& team,
            const std::vector<std::uint8_t>* is_own = nullptr);

  // Parts of find, for nodes of subtrees. `member_scratch` has the opened node, `scratch` is the
  // thread's.
  void open_sums(const GrowNode& node, Scratch& member_scratch);
  // `in_doubt`: leaf sizes that hessians leave in doubt are not admitted without counts.
  void search(const GrowNode& node, std::span<const std::uint32_t> features, bool in_doubt,
              const Scratch& member_scratch, Scratch& scratch, FeatureBest& best) const;
  // The same by gain ratio (grow/split/ratio_search.cpp), of all features of a node; `score` is the
  // node's. each_chunk(body) calls body(first, last, scratch) for chunks of the features.
  using SearchChunk = FunctionRef<void(std::size_t, std::size_t, Scratch&)>;
  void search_ratio(const GrowNode& node, std::span<const std::uint32_t> features, bool in_doubt,
                    double score, Scratch& member_scratch,
                    FunctionRef<void(SearchChunk)> each_chunk, FeatureBest& best) const;
  // All drawn features may be constant in the node. Then further features are drawn up to the first
  // that is not, as in scikit-learn; its split is the node's, whatever its gain.
  void search_further(const GrowNode& node, std::span<const std::uint32_t> drawn,
                      Scratch& member_scratch, FeatureBest& search_best);
  std::uint32_t next_code(const GrowNode& node, Scratch& member_scratch) const;
  FewRows few_rows(const Element* elements, std::size_t n, const std::int64_t* totals,
                   const Scratch& member_scratch) const;
  // Map from the stored codes of a shared column to the feature's own codes; null: its own column.
  const std::uint8_t* table(std::size_t feature) const {
    return tables_.empty() ? nullptr : tables_[feature];
  }
  const std::uint8_t* const* tables() const { return tables_.empty() ? nullptr : tables_.data(); }
  // Draws of random thresholds in a node.
  CutDraws draws(std::uint64_t path) const;

 private:
  // Splits of features with few values that are scored at once.
  static constexpr std::size_t most_candidates = 1024;
  static_assert(few_candidates <= most_candidates);

  struct CutRange {
    std::uint32_t low, high;  // lowest and highest code of values; low is that of missing: none
    bool missing;
    CodeSet seen;  // of a category
  };

  struct Source;
  struct SortedSource;
  struct HistogramSource;
  struct FewSource;
  // Calls use(source) with the source of a node that is open.
  template <class Use>
  auto with_source(const GrowNode& node, const Scratch& member_scratch, Use use) const;

  void set_tables();
  FeatureCodes codes_of(std::uint32_t feature) const {
    return {codes_.n_bins[feature], codes_.has_missing[feature] != 0, codes_.has_levels(feature)};
  }
  // Gain ratios (grow/split/ratio_search.cpp).
  FeatureRatio ratio_of(const GrowNode& node, const FeatureSplit& split, double score,
                        const Scratch& scratch) const;
  static std::size_t best_ratio(std::span<const FeatureRatio> ratios);

  template <class Of>
  GainParams gain_params(const Of& source) const;
  template <class Of>
  FeatureSplit find_split(const Of& source, const GainParams& p, std::uint32_t feature,
                          bool in_doubt, double floor, Scratch& scratch) const;
  template <class Of>
  void search_in(const Of& source, std::span<const std::uint32_t> features, bool in_doubt,
                 Scratch& scratch, FeatureBest& best) const;
  void take(std::uint32_t feature, const FeatureSplit& split, const Scratch& scratch,
            FeatureBest& best) const;
  bool is_scored_with_others(std::uint32_t feature) const;
  void score_candidates(const GainParams& p, const GrowNode& node, Scratch& scratch,
                        FeatureBest& best) const;
  std::int64_t apart(const GrowNode& node) const;

  // Leaf sizes in doubt (grow/split/count_search.cpp).
  bool has_enough_rows(const GrowNode& node, std::uint32_t feature, const FeatureSplit& split,
                       const std::int64_t* left_sums, Scratch& scratch) const;
  FeatureSplit find_counted(const HistogramSource& source, const GainParams& params,
                            std::uint32_t feature, double floor, Scratch& scratch) const;

  template <class Use>
  void each_sum(const GrowNode& node, std::uint32_t feature, const Scratch& member_scratch,
                Scratch& scratch, Use use) const;
  template <class Use>
  void each_row(const GrowNode& node, std::uint32_t feature, const Scratch& member_scratch,
                Use use) const;

  // Random thresholds (grow/split/random_cuts.cpp).
  void set_cut_values();
  bool varies(const GrowNode& node, std::uint32_t feature, Scratch& member_scratch) const;
  bool cuts_rows(const GrowNode& node, std::uint32_t feature) const;
  CutRange cut_range(const GrowNode& node, std::uint32_t feature, const Scratch& member_scratch,
                     Scratch& scratch) const;
  void sum_cut(const GrowNode& node, std::uint32_t feature, const FeatureSplit& cut,
               const Scratch& member_scratch, Scratch& scratch) const;
  FeatureSplit find_cut(const GainParams& p, const GrowNode& node, std::uint32_t feature,
                        const Scratch& member_scratch, double floor, Scratch& scratch) const;

  // Absolute errors (grow/split/absolute_search.cpp).
  const Element* in_order(const GrowNode& node, std::uint32_t feature, Scratch& scratch) const;
  bool allows(const AbsoluteSide& side, std::size_t n_rows) const;
  FeatureSplit find_absolute(const GrowNode& node, std::uint32_t feature,
                             const Scratch& member_scratch, double floor, Scratch& scratch) const;
  std::size_t score_cut(const GrowNode& node, std::uint32_t feature, const FeatureSplit& cut,
                        std::size_t n_candidates, const Scratch& member_scratch, double floor,
                        Scratch& scratch) const;

  const Codes& codes_;
  TreePolicy& policy_;
  const TreeParams& params_;
  const RowPartition& rows_;
  const Histograms& histograms_;
  const LeafSizes& sizes_;
  const SortedColumns* sorted_;
  AbsoluteRows* absolute_;
  std::size_t width_, channels_;
  // For features of shared columns: maps from stored codes to their own codes, and the map of each.
  std::vector<std::uint8_t> decoded_;
  std::vector<const std::uint8_t*> tables_;
  // Random thresholds: the values that represent each feature's bins.
  std::vector<double> bin_values_;
  std::vector<const double*> cut_values_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // [member]
};

}  // namespace arboost
