// Weighted quantiles by selection: O(n), in place.
//
// The quantile at alpha minimises the sum of the pinball losses: the smallest value at which the
// cumulative weight reaches the share alpha. If it reaches exactly alpha, every point up to the
// next value is a minimiser, and the result is the midpoint: the median of 1 and 2 is 1.5. Weights
// are integers, so the result does not depend on the order of the items.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>  // pair, swap
#include <vector>

#include "base/parallel.h"
#include "loss/quantile_goal.h"

namespace arboost {

// An item is a plain double, of weight 1, or this. No value may be NaN, no weight 0.
struct WeightedValue {
  double value;
  std::int64_t weight;
};

inline double value_of(double item) {
  return item;
}
inline double value_of(const WeightedValue& item) {
  return item.value;
}
inline std::int64_t weight_of(double) {
  return 1;
}
inline std::int64_t weight_of(const WeightedValue& item) {
  return item.weight;
}

template <class Item>
bool is_lower(const Item& a, const Item& b) {
  return value_of(a) < value_of(b);
}

template <class Item>
std::int64_t weight_between(const Item* first, const Item* last) {
  if constexpr (std::is_same_v<Item, double>) return last - first;
  return std::accumulate(first, last, std::int64_t{0},
                         [](std::int64_t sum, const Item& item) { return sum + weight_of(item); });
}

// The quantile among n > 0 items, with items of total weight `below` below all of them.
template <class Item>
double select(Item* items, std::size_t n, std::int64_t below, const QuantileGoal& goal) {
  std::size_t first = 0, last = n;  // the answer is in [first, last)
  if constexpr (std::is_same_v<Item, double>) {
    const double rank = std::ceil(goal.weight - goal.tolerance) - static_cast<double>(below) - 1;
    first = static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(n - 1)));
    std::nth_element(items, items + first, items + n);
    below += static_cast<std::int64_t>(first);
  } else {
    while (last - first > 1) {
      const std::size_t middle = first + (last - first) / 2;
      std::nth_element(items + first, items + middle, items + last, is_lower<Item>);
      const std::int64_t lower = weight_between(items + first, items + middle);
      if (goal.reached_by(below + lower)) {
        last = middle;
      } else {
        below += lower;
        first = middle;
      }
    }
  }
  const double value = value_of(items[first]);
  if (first + 1 == n || goal.passed_by(below + weight_of(items[first]))) return value;
  const double next = value_of(*std::min_element(items + first + 1, items + n, is_lower<Item>));
  return value == next ? value : 0.5 * value + 0.5 * next;
}

// Items that pay for a sample, and sizes of samples.
constexpr std::size_t worth_a_sample = 1024, many_items = 32768;
constexpr std::size_t few_sampled = 128, most_sampled = 2048;

// Two values that very likely enclose the quantile, from a sample of the items.
template <class Item>
std::pair<double, double> enclose(const Item* items, std::size_t n, double alpha) {
  const std::size_t size = n < many_items ? few_sampled : most_sampled;
  // More than four standard errors of a rank in the sample.
  const auto margin = static_cast<std::size_t>(
      2 + 4.2 * std::sqrt(alpha * (1 - alpha) * static_cast<double>(size)));
  Item sample[most_sampled];
  for (std::size_t i = 0; i < size; ++i) sample[i] = items[n / size * i];
  std::sort(sample, sample + size, is_lower<Item>);
  const QuantileGoal goal(alpha, weight_between(sample, sample + size));
  std::size_t at = 0;
  for (std::int64_t sum = weight_of(sample[0]); at + 1 < size && !goal.reached_by(sum);)
    sum += weight_of(sample[++at]);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return {at < margin ? -infinity : value_of(sample[at - margin]),
          at + margin >= size ? infinity : value_of(sample[at + margin])};
}

// The quantile at alpha of n > 0 items, which are reordered. `self` is the calling member of the
// team.
template <class Item>
double quantile_of(Item* items, std::size_t n, double alpha, Team& team, int self) {
  constexpr std::size_t block = 16384;
  const auto of_all = [&] {
    return select(items, n, 0, QuantileGoal(alpha, weight_between(items, items + n)));
  };
  if (n < worth_a_sample) return of_all();
  struct Counts {
    std::int64_t below = 0, inside = 0, total = 0;  // weights
    std::size_t n_inside = 0;
  };
  const auto [low, high] = enclose(items, n, alpha);
  std::vector<Counts> blocks((n + block - 1) / block);
  // Items between the two go to the front of their block.
  team.for_chunks(self, n, block,
                  [&, low = low, high = high](std::size_t begin, std::size_t end, int) {
                    Counts counts;
                    std::size_t front = begin;
                    for (std::size_t i = begin; i < end; ++i) {
                      const Item item = items[i];
                      const double value = value_of(item);
                      const std::int64_t weight = weight_of(item);
                      const bool inside = value >= low && value <= high;
                      counts.below += value < low ? weight : 0;
                      counts.inside += inside ? weight : 0;
                      counts.total += weight;
                      items[i] = items[front];
                      items[front] = item;
                      front += inside ? 1 : 0;
                    }
                    counts.n_inside = front - begin;
                    blocks[begin / block] = counts;
                  });
  Counts all;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    for (std::size_t i = 0; i < blocks[b].n_inside; ++i)
      std::swap(items[all.n_inside + i], items[b * block + i]);
    all.below += blocks[b].below;
    all.inside += blocks[b].inside;
    all.total += blocks[b].total;
    all.n_inside += blocks[b].n_inside;
  }
  const QuantileGoal goal(alpha, all.total);
  // Both the quantile and the next value must be inside, unless no item is above.
  const bool enclosed = !goal.reached_by(all.below) && (goal.passed_by(all.below + all.inside) ||
                                                        all.below + all.inside == all.total);
  return enclosed ? select(items, all.n_inside, all.below, goal) : of_all();
}

}  // namespace arboost
