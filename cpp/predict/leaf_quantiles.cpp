// Each leaf is an ascending list of ranks. A rank is guessed, and each list says how many of its
// entries are not above it; the sum tells on which side of the guess the quantile is, and each list
// goes on with its entries on that side:
//
//   guess      .......|              list 1   2 3|8 9        shares of 2 3, 1 and 4 4 5 together:
//                                    list 2   1|7            enough, so 8 9, 7 and 6 8 are out
//                                    list 3   4 4 5|6 8
//
// Lists without entries are done with. Cost: a few steps for each list and quantile, not for each
// row of the leaf: about 2 us a row with a hundred trees. Rows run in parallel.
#include "predict/leaf_quantiles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <vector>

namespace arboost {
namespace {

constexpr std::size_t rows_per_chunk = 128;
constexpr std::size_t most_trees = std::size_t{1} << 18;  // the units of all fit 62 bits

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// Quantiles of rows, with memory for the lists of one: each thread has its own.
template <bool weighted>
class Quantiles {
 public:
  Quantiles(const LeafDistributions& distributions, std::span<const double> quantiles)
      : from_(distributions), quantiles_(quantiles) {}

  // leaf_of(tree) is a node of the tree.
  template <class LeafOf>
  void of(LeafOf leaf_of, double* out) {
    collect(leaf_of);
    for (std::size_t i = 0; i < quantiles_.size(); ++i)
      out[i] = lists_.empty() ? std::numeric_limits<double>::quiet_NaN()
                              : from_.values[static_cast<std::size_t>(find(quantiles_[i]))];
  }

 private:
  struct List {
    const std::int32_t* rank;
    const std::int64_t* upto;
    std::size_t low, high;  // the entries that are still in question
    double unit;            // share of an entry, where all are equal

    // Of the first entries.
    std::int64_t share(std::size_t n) const {
      if constexpr (weighted) return n == 0 ? 0 : upto[n - 1];
      return static_cast<std::int64_t>(unit * static_cast<double>(n) + 0.5);
    }
  };

  template <class LeafOf>
  void collect(LeafOf leaf_of) {
    lists_.clear();
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
      lowest_ = std::min(lowest_, rank[0]);
      highest_ = std::max(highest_, rank[size - 1]);
    }
  }

  // Each share is rounded to a unit, so that a quantile is reached up to a unit for each tree:
  // three times a third is 1.
  std::int64_t goal(double quantile) const {
    const auto n = static_cast<std::int64_t>(lists_.size());
    const std::int64_t all = n * share_units;
    const double wanted = std::ceil(quantile * static_cast<double>(all));
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted) - n, 1, all - n);
  }

  std::int32_t find(double quantile) {
    const std::int64_t wanted = goal(quantile);
    open_ = lists_;
    upto_guess_.resize(open_.size());
    std::int64_t done = 0;  // shares of the lists that are no longer open
    std::int32_t low = lowest_, high = highest_;
    while (low < high) {
      const std::int32_t guess = low + (high - low) / 2;
      std::int64_t sum = done;
      for (std::size_t i = 0; i < open_.size(); ++i) {
        const List& list = open_[i];
        const auto* after = std::upper_bound(list.rank + list.low, list.rank + list.high, guess);
        upto_guess_[i] = static_cast<std::size_t>(after - list.rank);
        sum += list.share(upto_guess_[i]);
      }
      const bool reached = sum >= wanted;
      (reached ? high : low) = reached ? guess : guess + 1;
      done += keep_side(reached);
    }
    return low;
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
  std::int32_t lowest_ = 0, highest_ = 0;
};

std::size_t n_trees_of(const LeafDistributions& distributions) {
  return distributions.tree_start.size() - 1;
}

template <bool weighted>
void quantiles_of_leaves(const LeafDistributions& from, const std::int64_t* leaf,
                         std::size_t n_rows, std::span<const double> quantiles, Team& team,
                         double* out) {
  const std::size_t n_trees = n_trees_of(from);
  team.for_chunks(0, n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    Quantiles<weighted> of_row(from, quantiles);
    for (std::size_t row = begin; row < end; ++row) {
      const std::int64_t* own = leaf + row * n_trees;
      for (std::size_t t = 0; t < n_trees; ++t)
        require(own[t] >= 0 && own[t] < from.tree_start[t + 1] - from.tree_start[t],
                "a leaf outside its tree");
      of_row.of([own](std::size_t t) { return static_cast<std::size_t>(own[t]); },
                out + row * quantiles.size());
    }
  });
}

template <bool weighted>
void quantiles_of_table(const Columns& table, const Forest& forest, const LeafDistributions& from,
                        std::span<const double> quantiles, Team& team, double* out) {
  std::vector<Quantiles<weighted>> members(static_cast<std::size_t>(team.size()),
                                           Quantiles<weighted>(from, quantiles));
  traverse_leaves(table, forest, n_trees_of(from), team, [&](const LeafBlock& block, int member) {
    Quantiles<weighted>& of_row = members[static_cast<std::size_t>(member)];
    for (std::size_t row = block.begin; row < block.end; ++row) {
      const std::uint32_t* own = block.leaf + (row - block.begin);
      of_row.of([&](std::size_t t) { return std::size_t{own[t * block.stride]}; },
                out + row * quantiles.size());
    }
  });
}

void check(std::span<const double> quantiles) {
  for (const double quantile : quantiles)
    require(quantile >= 0 && quantile <= 1, "a quantile that is not between 0 and 1");
}

}  // namespace

void validate(const LeafDistributions& from) {
  require(!from.tree_start.empty() && from.tree_start[0] == 0, "trees that do not start at 0");
  require(n_trees_of(from) <= most_trees, "more trees than 262144");
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
}

void leaf_quantiles(const LeafDistributions& distributions, const std::int64_t* leaf,
                    std::size_t n_rows, std::span<const double> quantiles, Team& team,
                    double* out) {
  check(quantiles);
  const auto run =
      distributions.upto.empty() ? quantiles_of_leaves<false> : quantiles_of_leaves<true>;
  run(distributions, leaf, n_rows, quantiles, team, out);
}

void traverse_quantiles(const Columns& table, const Forest& forest,
                        const LeafDistributions& distributions, std::span<const double> quantiles,
                        Team& team, double* out) {
  check(quantiles);
  require(std::equal(forest.tree_start.begin(), forest.tree_start.end(),
                     distributions.tree_start.begin(), distributions.tree_start.end()),
          "distributions of another forest");
  const auto run =
      distributions.upto.empty() ? quantiles_of_table<false> : quantiles_of_table<true>;
  run(table, forest, distributions, quantiles, team, out);
}

}  // namespace arboost
