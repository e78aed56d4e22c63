// Multi-list selection. Each leaf is an ascending list of ranks. For a guessed rank, first from the
// quantiles of the single lists, each list counts its entries up to the guess; the total share
// decides the side of the quantile, and each list keeps its entries on that side:
//
//   guess      .......|              list 1   2 3|8 9        shares of 2 3, 1 and 4 4 5 together:
//                                    list 2   1|7            enough, so 8 9, 7 and 6 8 are out
//                                    list 3   4 4 5|6 8
//
// Empty lists are closed. Cost: some steps for each list and quantile, not for each row of the
// leaf: 5 to 30 us a row with a hundred trees. Short lists, as in full-grown trees, are merged and
// sorted instead, once for all quantiles. Shares are integers, so both methods agree. Parallel over
// rows.
#include "predict/quantiles/leaf_quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/require.h"
#include "predict/traverse.h"

namespace arboost {
namespace {

constexpr std::size_t most_sorted = 4;  // entries of a list, on average, that are sorted with all
constexpr std::size_t most_trees = std::size_t{1} << 18;  // the units of all fit 62 bits

// Quantiles of rows, with scratch memory for one row; one object a thread.
template <bool weighted>
class Quantiles {
 public:
  Quantiles(const LeafDistributions& distributions, std::span<const double> quantiles)
      : from_(distributions), quantiles_(quantiles) {}

  // leaf_of(tree) is a node of the tree.
  template <class LeafOf>
  void of(LeafOf leaf_of, double* out) {
    collect(leaf_of);
    const bool is_short = n_entries_ <= most_sorted * lists_.size();
    if (is_short) sort_entries();
    for (std::size_t i = 0; i < quantiles_.size(); ++i) {
      if (lists_.empty()) {
        out[i] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      const std::int32_t rank = is_short ? find_sorted(quantiles_[i]) : find(quantiles_[i]);
      out[i] = from_.values[static_cast<std::size_t>(rank)];
    }
  }

 private:
  struct List {
    const std::int32_t* rank;
    const std::int64_t* upto;
    std::size_t low, high;  // the entries that are still in question
    double unit;            // share of an entry, where all are equal

    // Number of entries up to this rank. With branches: speculative loads of uncached entries
    // outweigh the mispredictions.
    std::size_t upto_rank(std::int32_t most) const {
      return static_cast<std::size_t>(std::upper_bound(rank + low, rank + high, most) - rank);
    }

    // The entry at about this quantile of the list alone; any entry would do as a guess.
    std::size_t entry(double quantile) const {
      const double index = quantile * static_cast<double>(high);
      return std::min(static_cast<std::size_t>(index), high - 1);
    }

    // Of the first entries.
    std::int64_t share(std::size_t n) const {
      if constexpr (weighted) return n == 0 ? 0 : upto[n - 1];
      return static_cast<std::int64_t>(unit * static_cast<double>(n) + 0.5);
    }
  };

  template <class LeafOf>
  void collect(LeafOf leaf_of) {
    lists_.clear();
    n_entries_ = 0;
    lowest_ = std::numeric_limits<std::int32_t>::max();
    highest_ = 0;
    for (std::size_t t = 0; t + 1 < from_.tree_start.size(); ++t) {
      const std::size_t node = static_cast<std::size_t>(from_.tree_start[t]) + leaf_of(t);
      const auto begin = static_cast<std::size_t>(from_.start[node]);
      const auto size = static_cast<std::size_t>(from_.start[node + 1]) - begin;
      if (size == 0) continue;
      const std::int32_t* rank = from_.rank.data() + begin;
      lists_.push_back({rank, weighted ? from_.upto.data() + begin : nullptr, 0, size,
                        static_cast<double>(share_units) / static_cast<double>(size)});
      n_entries_ += size;
      lowest_ = std::min(lowest_, rank[0]);
      highest_ = std::max(highest_, rank[size - 1]);
    }
  }

  // Shares are rounded to units, so a quantile counts as reached within one unit a tree: three
  // times a third is 1.
  std::int64_t goal(double quantile) const {
    const auto n = static_cast<std::int64_t>(lists_.size());
    const std::int64_t all = n * share_units;
    const double wanted = std::ceil(quantile * static_cast<double>(all));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted) - n, 1, all - n);
  }

  // Of all lists together: ranks, ascending, and the shares up to each.
  void sort_entries() {
    order_.clear();
    shares_.clear();
    for (const List& list : lists_) {
      for (std::size_t i = 0; i < list.high; ++i) {
        order_.push_back(static_cast<std::uint64_t>(list.rank[i]) << 32 | shares_.size());
        shares_.push_back(list.share(i + 1) - list.share(i));
      }
    }
    std::sort(order_.begin(), order_.end());
    cumulated_.clear();
    std::int64_t sum = 0;
    for (const std::uint64_t entry : order_)
      cumulated_.push_back(sum += shares_[static_cast<std::uint32_t>(entry)]);
  }

  std::int32_t find_sorted(double quantile) const {
    const auto first = std::lower_bound(cumulated_.begin(), cumulated_.end(), goal(quantile));
    const auto index = static_cast<std::size_t>(first - cumulated_.begin());
    // Shares of a damaged file may not add up to 1; they must not lead outside.
    return static_cast<std::int32_t>(order_[std::min(index, order_.size() - 1)] >> 32);
  }

  std::int32_t find(double quantile) {
    wanted_ = goal(quantile);
    open_ = lists_;
    upto_guess_.resize(open_.size());
    done_ = 0;
    low_ = lowest_;
    high_ = highest_;
    // The quantile lies between those of the single lists, which are near each other.
    own_.clear();
    for (const List& list : lists_) own_.push_back(list.rank[list.entry(quantile)]);
    for (auto begin = own_.begin(), end = own_.end(); begin != end && low_ < high_;) {
      const auto middle = begin + (end - begin) / 2;
      std::nth_element(begin, middle, end);
      if (*middle >= low_ && *middle < high_) narrow(*middle);
      if (*middle >= high_)
        end = middle;
      else
        begin = middle + 1;
    }
    while (low_ < high_) narrow(low_ + (high_ - low_) / 2);
    return low_;
  }

  // Keeps the ranks on the quantile's side of the guess, in [low_, high_).
  void narrow(std::int32_t guess) {
    std::int64_t sum = done_;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      upto_guess_[i] = open_[i].upto_rank(guess);
      sum += open_[i].share(upto_guess_[i]);
    }
    const bool reached = sum >= wanted_;
    (reached ? high_ : low_) = reached ? guess : guess + 1;
    done_ += keep_side(reached);
  }

  // Shares of the lists of which nothing is left.
  std::int64_t keep_side(bool below) {
    std::int64_t done = 0;
    std::size_t n = 0;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      List list = open_[i];
      (below ? list.high : list.low) = upto_guess_[i];
      if (list.low == list.high)
        done += list.share(list.low);
      else
        open_[n++] = list;
    }
    open_.resize(n);
    return done;
  }

  const LeafDistributions& from_;
  std::span<const double> quantiles_;
  std::vector<List> lists_, open_;
  std::vector<std::size_t> upto_guess_;
  std::vector<std::int32_t> own_;
  std::size_t n_entries_ = 0;
  std::vector<std::uint64_t> order_;  // upper half: rank; lower half: number of the entry
  std::vector<std::int64_t> shares_, cumulated_;
  std::int32_t lowest_ = 0, highest_ = 0;  // of all entries
  std::int32_t low_ = 0, high_ = 0;        // of those that are still in question
  std::int64_t wanted_ = 0, done_ = 0;     // shares: the goal, and those of lists not open any more
};

std::size_t n_trees_of(const LeafDistributions& distributions) {
  return distributions.tree_start.size() - 1;
}

template <bool weighted>
void quantiles_of_table(const Columns& table, const Forest& forest, const LeafDistributions& from,
                        std::span<const double> quantiles, Team& team, double* out) {
  std::vector<Quantiles<weighted>> members(static_cast<std::size_t>(team.size()),
                                           Quantiles<weighted>(from, quantiles));
  traverse_leaves(table, forest, n_trees_of(from), team, [&](const LeafBlock& block, int member) {
    Quantiles<weighted>& of_row = members[static_cast<std::size_t>(member)];
    for (std::size_t row = block.begin; row < block.end; ++row) {
      const std::uint32_t* row_leaves = block.leaf + (row - block.begin);
      of_row.of([&](std::size_t t) { return std::size_t{row_leaves[t * block.stride]}; },
                out + row * quantiles.size());
    }
  });
}

void check(std::span<const double> quantiles) {
  for (const double quantile : quantiles)
    require(quantile >= 0 && quantile <= 1, "a quantile is not between 0 and 1");
}

}  // namespace

void validate(const LeafDistributions& from) {
  require(!from.tree_start.empty() && from.tree_start[0] == 0, "trees that do not start at 0");
  require(n_trees_of(from) <= most_trees, "the forest has more than 262144 trees");
  require(std::is_sorted(from.tree_start.begin(), from.tree_start.end()) &&
              static_cast<std::size_t>(from.tree_start.back()) + 1 == from.start.size(),
          "trees outside the nodes");
  require(from.start[0] == 0 && std::is_sorted(from.start.begin(), from.start.end()) &&
              static_cast<std::size_t>(from.start.back()) == from.rank.size(),
          "nodes outside the rows");
  require(from.upto.empty() || from.upto.size() == from.rank.size(), "shares of other rows");
  const auto n_values = static_cast<std::int64_t>(from.values.size());
  bool inside = true;
  for (const std::int32_t rank : from.rank) inside &= rank >= 0 && rank < n_values;
  require(inside, "a rank without value");
  for (const std::int64_t share : from.upto) inside &= share >= 0 && share <= share_units;
  require(inside, "a share is not between 0 and 1");
}

void traverse_quantiles(const Columns& table, const Forest& forest,
                        const LeafDistributions& distributions, std::span<const double> quantiles,
                        Team& team, double* out) {
  check(quantiles);
  require(std::equal(forest.tree_start.begin(), forest.tree_start.end(),
                     distributions.tree_start.begin(), distributions.tree_start.end()),
          "the leaf distributions belong to another forest");
  const auto run =
      distributions.upto.empty() ? quantiles_of_table<false> : quantiles_of_table<true>;
  run(table, forest, distributions, quantiles, team, out);
}

}  // namespace arboost
