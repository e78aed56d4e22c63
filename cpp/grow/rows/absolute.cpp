// Cost: O(log n) for each row that is added and each median. One node a thread.
#include "grow/rows/absolute.h"

#include <algorithm>
#include <bit>  // bit_floor
#include <cmath>

namespace arboost {
namespace {

// The absolute error around the median, from Fenwick sums part(i), i in [1, n], their total, and y
// ascending. The median is the first row at which the cumulative weight reaches half; no other
// point, also between two rows, has a lower error.
template <class Part>
double error_of(std::size_t n, WeightSums all, const double* y, double g_unit, double h_unit,
                Part part) {
  if (all.w == 0) return 0;
  std::size_t at = 0;
  WeightSums below;
  for (std::size_t step = std::bit_floor(n); step > 0; step /= 2) {
    if (at + step > n) continue;
    const WeightSums sum = part(at + step);
    if (2 * (below.w + sum.w) >= all.w) continue;
    at += step;
    below.w += sum.w;
    below.wy += sum.wy;
  }
  const double median = y[at];
  return static_cast<double>(all.wy - 2 * below.wy) * g_unit -
         median * (static_cast<double>(all.w - 2 * below.w) * h_unit);
}

}  // namespace

AbsoluteRows::AbsoluteRows(std::size_t n_table_rows, std::size_t width)
    : width_(width), number_(n_table_rows), ranks_(n_table_rows * width) {}

void AbsoluteRows::start_tree(const TreeRows& rows, const TreePairs& pairs, Team& team) {
  pairs_ = &pairs;
  g_unit_ = std::ldexp(1.0, -pairs.g_exponent);
  h_unit_ = std::ldexp(1.0, -pairs.h_exponent);
  for (std::size_t i = 0; i < rows.n; ++i) number_[rows.row(i)] = static_cast<std::uint32_t>(i);
  team.for_chunks(0, width_, 1, [&](std::size_t output, std::size_t, int) {
    std::vector<std::pair<double, RowId>> order(rows.n);
    for (std::size_t i = 0; i < rows.n; ++i) order[i] = {y(rows.row(i), output), rows.row(i)};
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < rows.n; ++i)
      rank(order[i].second, output) = static_cast<std::uint32_t>(i);
  });
}

double AbsoluteNode::open(const Element* elements, std::size_t n, AbsoluteRows& rows) {
  n_ = n;
  const std::size_t width = rows.width();
  keys_.resize(n);
  y_.resize(n * width);
  total_.assign((n + 1) * width, {});
  all_.assign(width, {});
  double error = 0;
  for (std::size_t k = 0; k < width; ++k) {
    for (std::size_t i = 0; i < n; ++i)
      keys_[i] = std::uint64_t{rows.rank(row_of(elements[i]), k)} << 32 | i;
    std::sort(keys_.begin(), keys_.end());
    WeightSums* total = total_.data() + k * (n + 1);
    for (std::size_t rank = 0; rank < n; ++rank) {
      const RowId row = row_of(elements[keys_[rank] & 0xffffffff]);
      rows.rank(row, k) = static_cast<std::uint32_t>(rank);
      y_[k * n + rank] = rows.y(row, k);
      const WeightSums sums = rows.sums(row, k);
      all_[k].w += sums.w;
      all_[k].wy += sums.wy;
      total[rank + 1] = {total[rank + 1].w + sums.w, total[rank + 1].wy + sums.wy};
      const std::size_t above = rank + 1 + ((rank + 1) & ~rank);
      if (above > n) continue;
      total[above].w += total[rank + 1].w;
      total[above].wy += total[rank + 1].wy;
    }
    error += error_of(n, all_[k], y(k), rows.g_unit(), rows.h_unit(),
                      [total](std::size_t i) { return total[i]; });
  }
  return error;
}

void AbsoluteSide::clear(const AbsoluteNode& node, const AbsoluteRows& rows) {
  node_ = &node;
  rows_ = &rows;
  n_rows_ = 0;
  left_.assign((node.size() + 1) * rows.width(), {});
  all_.assign(rows.width(), {});
}

void AbsoluteSide::add(RowId row) {
  const std::size_t n = node_->size();
  ++n_rows_;
  for (std::size_t k = 0; k < all_.size(); ++k) {
    const WeightSums sums = rows_->sums(row, k);
    all_[k].w += sums.w;
    all_[k].wy += sums.wy;
    WeightSums* left = left_.data() + k * (n + 1);
    for (std::size_t i = rows_->rank(row, k) + std::size_t{1}; i <= n; i += i & (~i + 1)) {
      left[i].w += sums.w;
      left[i].wy += sums.wy;
    }
  }
}

std::int64_t AbsoluteSide::weight() const {
  std::int64_t sum = 0;
  for (const WeightSums& all : all_) sum += all.w;
  return sum;
}

std::int64_t AbsoluteSide::other_weight() const {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < all_.size(); ++k) sum += node_->all(k).w - all_[k].w;
  return sum;
}

double AbsoluteSide::both_errors() const {
  const std::size_t n = node_->size();
  double error = 0;
  for (std::size_t k = 0; k < all_.size(); ++k) {
    const WeightSums* left = left_.data() + k * (n + 1);
    const WeightSums* total = node_->total(k);
    const WeightSums whole = node_->all(k);
    const double g_unit = rows_->g_unit(), h_unit = rows_->h_unit();
    error += error_of(n, all_[k], node_->y(k), g_unit, h_unit,
                      [left](std::size_t i) { return left[i]; });
    error += error_of(n, {whole.w - all_[k].w, whole.wy - all_[k].wy}, node_->y(k), g_unit, h_unit,
                      [left, total](std::size_t i) {
                        return WeightSums{total[i].w - left[i].w, total[i].wy - left[i].wy};
                      });
  }
  return error;
}

}  // namespace arboost
