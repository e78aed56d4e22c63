// Medians over trees use the ranks of the leaves, unless rows are so few that ranking costs more.
//
// Other medians use quickselect with weights. Cost: about 10 ns a value, five times that if a row
// must be sorted. Parallel over rows.
//
// Sums of weights in another order than the sorted one differ by rounding. So sums decide only if
// they are clearly apart from half of the total; otherwise the row is sorted and its weights are
// cumulated, the slower definition.
#include "predict/quantiles/tree_quantiles.h"

#include <algorithm>  // max, min, sort
#include <bit>        // bit_width
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <utility>    // swap
#include <vector>

#include "base/require.h"
#include "base/types.h"  // ARBOOST_RESTRICT
#include "predict/traverse.h"

namespace arboost {
namespace {

constexpr std::size_t rows_per_chunk = 512;  // about a fifth of a millisecond for a hundred values

// Least number of values a node for which ranks pay.
constexpr std::size_t values_per_node = 4;

double middle(double a, double b, double c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// Medians of rows under the same weights, with scratch memory for one row; one object a thread.
class Medians {
 public:
  explicit Medians(std::span<const double> weights)
      : weights_(weights), votes_(weights.size()), others_(weights.size()) {}

  double of(const double* values, std::ptrdiff_t stride) {
    std::size_t n = 0;
    double total = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const double value = values[static_cast<std::ptrdiff_t>(i) * stride];
      const bool present = value == value;
      votes_[n] = {value, weights_[i]};
      n += present;
      total += present ? weights_[i] : 0.0;
    }
    if (n == 0) return std::numeric_limits<double>::quiet_NaN();
    double median;
    return select(n, total, median) ? median : sort(values, stride);
  }

 private:
  struct Vote {
    double value, weight;
  };
  struct Parts {
    std::size_t n_below, n_above;
    double below, upto;  // weights below the pivot, and up to it
  };

  // Keeps the votes below the pivot and copies those above it to the others.
  Parts split(std::size_t n, double pivot) {
    Parts parts{0, 0, 0.0, 0.0};
    Vote* votes = votes_.data();
    Vote* others = others_.data();
    for (std::size_t i = 0; i < n; ++i) {
      const Vote vote = votes[i];
      const bool below = vote.value<pivot, above = vote.value> pivot;
      votes[parts.n_below] = vote;
      parts.n_below += below;
      others[parts.n_above] = vote;
      parts.n_above += above;
      parts.below += below ? vote.weight : 0.0;
      parts.upto += above ? 0.0 : vote.weight;
    }
    return parts;
  }

  // Finds the median, unless a sum is too close to half of the total, or pivots are repeatedly bad.
  // Every comparison is false if sums are infinite or all weights are 0.
  bool select(std::size_t n, double total, double& median) {
    // A sum of n numbers is wrong by at most n half units of its last place, and two of them and
    // the total are compared; four units for each number are enough.
    const double slack =
        4 * static_cast<double>(n) * std::numeric_limits<double>::epsilon() * total;
    const double surely_less = 0.5 * total - slack, surely_more = 0.5 * total + slack;
    double before = 0;  // weight of the values below those that are left
    for (int passes = 4 * static_cast<int>(std::bit_width(n)); passes > 0; --passes) {
      const double pivot = middle(votes_[0].value, votes_[n / 2].value, votes_[n - 1].value);
      const Parts parts = split(n, pivot);
      if (before + parts.below > surely_more) {
        n = parts.n_below;
      } else if (!(before + parts.below < surely_less)) {
        return false;
      } else if (before + parts.upto > surely_more) {
        median = pivot;
        return true;
      } else if (!(before + parts.upto < surely_less)) {
        return false;
      } else {
        before += parts.upto;
        n = parts.n_above;
        std::swap(votes_, others_);
      }
    }
    return false;
  }

  double sort(const double* values, std::ptrdiff_t stride) {
    const auto value = [&](std::size_t i) {
      return values[static_cast<std::ptrdiff_t>(i) * stride];
    };
    order_.clear();
    for (std::size_t i = 0; i < weights_.size(); ++i)
      if (!std::isnan(value(i))) order_.push_back(i);
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return value(a) != value(b) ? value(a) < value(b) : a < b;
    });
    double total = 0;
    for (const std::size_t i : order_) total += weights_[i];
    double sum = 0;
    for (const std::size_t i : order_) {
      sum += weights_[i];
      if (sum >= 0.5 * total) return value(i);
    }
    return value(order_.back());
  }

  std::span<const double> weights_;
  std::vector<Vote> votes_, others_;
  std::vector<std::size_t> order_;
};

void check_weights(std::span<const double> weights) {
  if (weights.empty()) throw std::invalid_argument("a median of no values");
  for (const double weight : weights)
    if (!std::isfinite(weight) || weight < 0)
      throw std::invalid_argument("a weight is negative or not finite");
}

// All leaves are ranked once by their values, so that a row is one small integer a tree. A sorting
// network sorts the integers of several rows at once:
//
//   keys[tree][lane]   lane 0 1 2 3 ...      an exchange puts the smaller ones of two lines into
//            tree 0         7 3 9 9          the upper one: one instruction for all lanes, and none
//            tree 1         2 8 4 1          depends on what is compared
//
// Then the weights are cumulated in this order, as in the definition of the median. Cost: 1 to 2 ns
// a value for a hundred trees, and about 100 ns to rank a leaf. Parallel over rows.

// Rows that are sorted together. GCC unrolls shorter loops before it can vectorise them.
constexpr std::size_t lanes = 32;

// Leaves sorted by value, ties by tree. NaN leaves are left out of medians: they come last, with
// zero weight.
struct Ranking {
  std::vector<std::int32_t> rank;     // of each node that is a leaf
  std::vector<double> value, weight;  // of each rank
};

Ranking rank_leaves(const Forest& forest, std::span<const double> weights) {
  struct Leaf {
    double value, weight;
    std::size_t node;
  };
  const std::size_t n_nodes = forest.left.size();
  std::vector<Leaf> leaves;
  leaves.reserve(n_nodes / 2 + weights.size());
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const auto first = static_cast<std::size_t>(forest.tree_start[t]);
    const auto last = static_cast<std::size_t>(forest.tree_start[t + 1]);
    if (first > last || last > n_nodes) throw std::invalid_argument("trees outside the nodes");
    for (std::size_t node = first; node < last; ++node) {
      if (forest.left[node] != 0) continue;
      const double value = forest.value[node];
      leaves.push_back({value, std::isnan(value) ? 0.0 : weights[t], node});
    }
  }
  if (leaves.size() > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("the forest has more leaves than ranks");
  std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
    if (std::isnan(a.value) != std::isnan(b.value)) return std::isnan(b.value);
    return a.value < b.value || (!(b.value < a.value) && a.node < b.node);
  });
  Ranking ranking{std::vector<std::int32_t>(n_nodes), {}, {}};
  for (const Leaf& leaf : leaves) {
    ranking.rank[leaf.node] = static_cast<std::int32_t>(ranking.value.size());
    ranking.value.push_back(leaf.value);
    ranking.weight.push_back(leaf.weight);
  }
  return ranking;
}

template <class Key>
inline void exchange(Key* ARBOOST_RESTRICT upper, Key* ARBOOST_RESTRICT lower) {
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const Key a = upper[lane], b = lower[lane];
    upper[lane] = a < b ? a : b;
    lower[lane] = a < b ? b : a;
  }
}

// Batcher's odd-even merge sort of n lines. Runs of `sorted` lines are merged by exchanges between
// lines that are `apart`, first far and then near, of the same pair of runs.
template <class Key>
void sort_lines(Key* keys, std::size_t n) {
  for (std::size_t sorted = 1; sorted < n; sorted *= 2)
    for (std::size_t apart = sorted; apart > 0; apart /= 2)
      for (std::size_t first = apart % sorted; first + apart < n; first += 2 * apart)
        for (std::size_t i = first; i < std::min(first + apart, n - apart); ++i)
          if ((i ^ (i + apart)) < 2 * sorted)
            exchange(keys + i * lanes, keys + (i + apart) * lanes);
}

// Medians of `lanes` rows at a time, with memory for them: each thread has its own.
template <class Key>
class RankedMedians {
 public:
  RankedMedians(const Ranking& ranking, std::size_t n_trees)
      : ranking_(ranking), n_trees_(n_trees), keys_(n_trees * lanes), cumulated_(n_trees * lanes) {}

  // Adds the medians of at most `lanes` rows; leaf[t * stride + i] is that of row i.
  void add(const Forest& forest, const std::uint32_t* leaf, std::size_t stride, std::size_t n_rows,
           double* scores) {
    for (std::size_t t = 0; t < n_trees_; ++t, leaf += stride) {
      const std::int32_t* rank = ranking_.rank.data() + forest.tree_start[t];
      for (std::size_t i = 0; i < n_rows; ++i)
        keys_[t * lanes + i] = static_cast<Key>(rank[leaf[i]]);
    }
    sort_lines(keys_.data(), n_trees_);
    cumulate();
    for (std::size_t i = 0; i < n_rows; ++i)
      scores[i] += ranking_.value[static_cast<std::size_t>(keys_[reach_half(i) * lanes + i])];
  }

 private:
  void cumulate() {
    double sum[lanes] = {};
    for (std::size_t at = 0; at < keys_.size(); at += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        sum[lane] += ranking_.weight[static_cast<std::size_t>(keys_[at + lane])];
        cumulated_[at + lane] = sum[lane];
      }
  }

  // First line at which the cumulated weights, which never fall, reach half of their total.
  std::size_t reach_half(std::size_t lane) const {
    const double half = 0.5 * cumulated_[(n_trees_ - 1) * lanes + lane];
    std::size_t line = 0;
    for (std::size_t left = n_trees_; left > 1;) {
      const std::size_t step = left / 2;
      line += cumulated_[(line + step - 1) * lanes + lane] < half ? step : 0;
      left -= step;
    }
    return line + (cumulated_[line * lanes + lane] < half);
  }

  const Ranking& ranking_;
  std::size_t n_trees_;
  std::vector<Key> keys_;  // [tree][lane]
  std::vector<double> cumulated_;
};

template <class Key>
void add_medians(const Columns& table, const Forest& forest, const Ranking& ranking,
                 std::size_t n_trees, Team& team, double* scores) {
  std::vector<RankedMedians<Key>> members(static_cast<std::size_t>(team.size()),
                                          RankedMedians<Key>(ranking, n_trees));
  traverse_leaves(table, forest, n_trees, team, [&](const LeafBlock& block, int member) {
    auto& medians = members[static_cast<std::size_t>(member)];
    for (std::size_t row = block.begin; row < block.end; row += lanes)
      medians.add(forest, block.leaf + (row - block.begin), block.stride,
                  std::min(lanes, block.end - row), scores + row);
  });
}

// The caller checks the weights and the width.
void ranked_median(const Columns& table, const Forest& forest, std::span<const double> weights,
                   Team& team, double* scores) {
  if (weights.size() >= forest.tree_start.size()) throw std::invalid_argument("trees out of range");
  const Ranking ranking = rank_leaves(forest, weights);
  // The minimum of 16-bit integers is one instruction on every processor.
  const bool narrow = ranking.value.size() <= std::numeric_limits<std::int16_t>::max();
  const auto add = narrow ? add_medians<std::int16_t> : add_medians<std::int32_t>;
  add(table, forest, ranking, weights.size(), team, scores);
}

// ---- quantile regression forests ----
//
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

void check_quantiles(std::span<const double> quantiles) {
  for (const double quantile : quantiles)
    require(quantile >= 0 && quantile <= 1, "a quantile is not between 0 and 1");
}

}  // namespace

void weighted_median(const ValueRows& values, std::span<const double> weights, Team& team,
                     double* out) {
  check_weights(weights);
  team.for_chunks(0, values.n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    Medians medians(weights);
    for (std::size_t row = begin; row < end; ++row)
      out[row] = medians.of(values.data + static_cast<std::ptrdiff_t>(row) * values.row_stride,
                            values.column_stride);
  });
}

void traverse_median(const Columns& table, const Forest& forest, std::span<const double> weights,
                     Team& team, double* scores) {
  check_weights(weights);
  if (forest.width != 1) throw std::invalid_argument("a median of leaves of several values");
  const std::size_t n_trees = weights.size();
  if (table.n_rows > values_per_node * forest.left.size() / n_trees)
    return ranked_median(table, forest, weights, team, scores);
  struct Member {
    Medians medians;
    std::vector<double> values;
  };
  std::vector<Member> members(static_cast<std::size_t>(team.size()),
                              {Medians(weights), std::vector<double>(n_trees)});
  traverse_leaves(table, forest, n_trees, team, [&](const LeafBlock& block, int member) {
    auto& [medians, values] = members[static_cast<std::size_t>(member)];
    for (std::size_t row = block.begin; row < block.end; ++row) {
      const std::uint32_t* leaf = block.leaf + (row - block.begin);
      for (std::size_t t = 0; t < n_trees; ++t)
        values[t] =
            forest.value[static_cast<std::size_t>(forest.tree_start[t]) + leaf[t * block.stride]];
      scores[row] += medians.of(values.data(), 1);
    }
  });
}

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
  check_quantiles(quantiles);
  require(std::equal(forest.tree_start.begin(), forest.tree_start.end(),
                     distributions.tree_start.begin(), distributions.tree_start.end()),
          "the leaf distributions belong to another forest");
  const auto run =
      distributions.upto.empty() ? quantiles_of_table<false> : quantiles_of_table<true>;
  run(table, forest, distributions, quantiles, team, out);
}

}  // namespace arboost
