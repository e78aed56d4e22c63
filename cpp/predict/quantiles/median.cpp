// Medians over trees use the ranks of the leaves (ranked.h), unless rows are so few that ranking
// costs more.
//
// Other medians use quickselect with weights. Cost: about 10 ns a value, five times that if a row
// must be sorted. Parallel over rows.
//
// Sums of weights in another order than the sorted one differ by rounding. So sums decide only if
// they are clearly apart from half of the total; otherwise the row is sorted and its weights are
// cumulated, the slower definition.
#include "predict/quantiles/median.h"

#include <algorithm>  // max, min, sort
#include <bit>        // bit_width
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <utility>    // swap
#include <vector>

#include "predict/quantiles/ranked.h"
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

void check(std::span<const double> weights) {
  if (weights.empty()) throw std::invalid_argument("a median of no values");
  for (const double weight : weights)
    if (!std::isfinite(weight) || weight < 0)
      throw std::invalid_argument("a weight is negative or not finite");
}

}  // namespace

void weighted_median(const ValueRows& values, std::span<const double> weights, Team& team,
                     double* out) {
  check(weights);
  team.for_chunks(0, values.n_rows, rows_per_chunk, [&](std::size_t begin, std::size_t end, int) {
    Medians medians(weights);
    for (std::size_t row = begin; row < end; ++row)
      out[row] = medians.of(values.data + static_cast<std::ptrdiff_t>(row) * values.row_stride,
                            values.column_stride);
  });
}

void traverse_median(const Columns& table, const Forest& forest, std::span<const double> weights,
                     Team& team, double* scores) {
  check(weights);
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

}  // namespace arboost
