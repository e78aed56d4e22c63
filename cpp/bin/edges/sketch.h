// Weighted quantile sketch: weighted values, in pieces -> quantiles with a known error bound.
//
// The weighted quantile summary of Chen and Guestrin (2016, appendix). For some values x of a
// multiset D of weighted values it keeps
//
//   rmin <= weight of the values below x,    rmax >= weight of the values up to x,
//   weight <= weight of x itself,
//
// and gives for every y between the neighbours x < y < x':
//
//   rmin(y) = rmin(x) + weight(x),    rmax(y) = rmax(x') - weight(x'),    weight(y) = 0.
//
// Its error is the largest rmax(y) - rmin(y) - weight(y) over all y. In units of weight:
//
//   exact   A summary of all values has error 0.
//   merge   Bounds of A and B add up to bounds of A and B together, so errors add up; as a part of
//           the total weight, the error is at most the larger one's (theorem of the appendix).
//   prune   Keeping the answers to the queries d = 0, W/b, 2W/b, ..., W, at most b + 1 values of
//           total weight W, adds at most W/b to the error (theorem of the appendix).
//
// So the error of any tree of merges and prunes is at most the sum over its prunes. Weights are
// integers: sums are exact, and the bounds hold without rounding errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace arboost {

struct SummaryEntry {
  double value;
  std::int64_t rmin, rmax, weight;
};

class Summary {
 public:
  // Sums stay below this, so that twice a sum fits an int64.
  static constexpr std::int64_t largest_total = std::int64_t{1} << 61;

  Summary() = default;
  // Exact summary of values that ascend, equal ones next to each other, of weights above 0.
  Summary(std::span<const double> values, std::span<const std::int64_t> weights);

  const std::vector<SummaryEntry>& entries() const { return entries_; }
  std::int64_t total() const { return total_; }
  // Error bound by the theorems, and the error of the actual entries, which is never larger.
  std::int64_t bound() const { return bound_; }
  std::int64_t error() const;

  // (rmin, rmax) of any value.
  std::pair<std::int64_t, std::int64_t> rank_bounds(double value) const;

  void merge(const Summary& other);
  // Keeps at most `size` values, at least 2.
  void prune(std::size_t size);

  // Indices of the entries after which to cut, ascending, so that the values of one part but the
  // largest weigh at most eps of the total together, by the bounds of this summary; apart from
  // that as few as can be. A value of twice that weight or more is a part of its own. With an error
  // of e parts of the total, there are at most 1 + 1 / (eps - 2e) parts.
  std::vector<std::size_t> cuts(double eps) const;
  // The same for the exact summary of the values 0, 1, ..., of which sums[i] is the weight of those
  // up to i: the values after which to cut.
  static std::vector<std::size_t> cuts(std::span<const std::int64_t> sums, double eps);

 private:
  // (rmin, rmax) of a value above entry i - 1 and below entry i.
  std::pair<std::int64_t, std::int64_t> bounds_before(std::size_t i) const;
  void append(const Summary& other);

  std::vector<SummaryEntry> entries_;
  std::int64_t total_ = 0, bound_ = 0;
};

}  // namespace arboost
