// Distinct values with weights -> edges.
//
//   values   -3 -2 -1  0 ########  1  2  3  4        # weight of a heavy value
//   bins    |   2    |      1    |     3     |
//
// Heavy values get one bin each; the runs of light values between them share the remaining bins.
// Linear in the number of values; single-threaded, one call a column.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bin/edges/quantiles.h"

namespace arboost {
namespace {

// Weights of values as running sums: sums[i] is the weight of the values 0 to i.
struct Weights {
  std::span<const double> sums;

  double before(std::size_t i) const { return i == 0 ? 0.0 : sums[i - 1]; }
  double of(std::size_t begin, std::size_t end) const { return before(end) - before(begin); }
  double of(std::size_t i) const { return of(i, i + 1); }
  double total() const { return sums.back(); }
};

// Ascending indices of the heavy values. A value is heavy if it fills an equal share of the weight
// that heavier values leave.
std::vector<std::size_t> heavy_values(Weights weights, std::size_t max_bins) {
  const std::size_t n = weights.sums.size();
  double share = weights.total() / static_cast<double>(max_bins);
  int n_heavy = weights.of(0) >= share ? 1 : 0;
  for (std::size_t i = 1; i < n; ++i)
    n_heavy += weights.sums[i] - weights.sums[i - 1] >= share ? 1 : 0;
  std::vector<std::size_t> heavy;
  if (n_heavy == 0) return heavy;  // the common case: no value repeats a lot

  // The heaviest first; among equals the smallest, so that the choice is unique.
  const auto lighter = [&](std::size_t a, std::size_t b) {
    const double wa = weights.of(a), wb = weights.of(b);
    return wa < wb || (wa == wb && a > b);
  };
  std::vector<std::size_t> heap(n);
  for (std::size_t i = 0; i < n; ++i) heap[i] = i;
  std::make_heap(heap.begin(), heap.end(), lighter);
  double rest = weights.total();
  for (std::size_t bins = max_bins; bins > 1; --bins) {
    const std::size_t heaviest = heap.front();
    if (weights.of(heaviest) < rest / static_cast<double>(bins)) break;
    heavy.push_back(heaviest);
    rest -= weights.of(heaviest);
    std::pop_heap(heap.begin(), heap.end(), lighter);
    heap.pop_back();
  }
  std::sort(heavy.begin(), heavy.end());
  return heavy;
}

// A run of neighbouring light values, or one heavy value.
struct Stretch {
  std::size_t begin, end;
  bool heavy;
};

std::vector<Stretch> stretches_of(std::size_t n, const std::vector<std::size_t>& heavy) {
  std::vector<Stretch> stretches;
  std::size_t begin = 0;
  for (const std::size_t i : heavy) {
    if (begin < i) stretches.push_back({begin, i, false});
    stretches.push_back({i, i + 1, true});
    begin = i + 1;
  }
  if (begin < n) stretches.push_back({begin, n, false});
  return stretches;
}

// Appends the first value of each of n_bins bins of a light stretch. A bin ends where its weight
// comes nearest to an equal share of what is left.
void split_evenly(const Stretch& stretch, Weights weights, std::size_t n_bins,
                  std::vector<std::size_t>& starts) {
  const auto sums = weights.sums.begin();
  std::size_t start = stretch.begin;
  for (; n_bins > 1; --n_bins) {
    starts.push_back(start);
    const double rest = weights.of(start, stretch.end);
    const double target = weights.before(start) + rest / static_cast<double>(n_bins);
    // Each bin, this one and those after it, needs a value at least.
    const std::size_t least = start + 1, most = stretch.end - (n_bins - 1);
    const auto at = std::lower_bound(sums + static_cast<std::ptrdiff_t>(start),
                                     sums + static_cast<std::ptrdiff_t>(stretch.end), target);
    auto end = static_cast<std::size_t>(at - sums);  // the bin without the value at the target
    if (end < stretch.end && weights.sums[end] - target <= target - weights.before(end)) ++end;
    start = std::clamp(end, least, most);
  }
  starts.push_back(start);
}

// Index of the first value of each bin.
std::vector<std::size_t> bin_starts(Weights weights, std::size_t max_bins) {
  const auto heavy = heavy_values(weights, max_bins);
  const auto stretches = stretches_of(weights.sums.size(), heavy);
  std::size_t bins = max_bins - heavy.size(), n_light = stretches.size() - heavy.size();
  double light = weights.total();
  for (const std::size_t i : heavy) light -= weights.of(i);
  // With bins to spare, even the thinnest stretch has one, so that heavy values stay alone.
  const bool spare = 2 * n_light <= bins;
  std::vector<std::size_t> starts;
  bool joined = false;  // whether the heavy value that follows has light ones before it in its bin
  for (const Stretch& stretch : stretches) {
    if (stretch.heavy) {
      if (!joined) starts.push_back(stretch.begin);
      joined = false;
      continue;
    }
    --n_light;
    const double weight = weights.of(stretch.begin, stretch.end);
    std::size_t wanted = bins;
    if (n_light > 0 && weight < light)
      wanted = static_cast<std::size_t>(std::llround(weight / light * static_cast<double>(bins)));
    if (spare) wanted = std::max<std::size_t>(1, std::min(wanted, bins - n_light));
    wanted = std::min(wanted, stretch.end - stretch.begin);
    if (wanted > 0) {
      split_evenly(stretch, weights, wanted, starts);
    } else if (starts.empty()) {  // too thin: joins the heavy value after it, else that before it
      starts.push_back(stretch.begin);
      joined = true;
    }
    bins -= wanted;
    light -= weight;
  }
  return starts;
}

}  // namespace

double edge_between(double a, double b) {
  constexpr double largest = std::numeric_limits<double>::max();
  if (std::isinf(a) && std::isinf(b)) return 0;
  double middle = (a + b) / 2;
  if (std::isinf(b)) middle = largest;
  if (std::isinf(a)) middle = -largest;
  if (!std::isfinite(middle)) middle = a / 2 + b / 2;  // the sum was too large
  return middle >= a && middle < b ? middle : a;
}

std::vector<double> cut(std::span<const double> values, std::span<const double> sums,
                        std::size_t max_bins) {
  std::vector<double> edges;
  if (values.size() <= max_bins) {
    for (std::size_t i = 1; i < values.size(); ++i)
      edges.push_back(edge_between(values[i - 1], values[i]));
    return edges;
  }
  for (const std::size_t start : bin_starts({sums}, max_bins))
    if (start > 0) edges.push_back(edge_between(values[start - 1], values[start]));
  return edges;
}

}  // namespace arboost
