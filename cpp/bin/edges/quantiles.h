// Columns -> edges. Code of x = number of edges strictly below x, so k edges make k + 1 bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "table/columns.h"

namespace arboost {

// Edges of every column, ascending, at most max_bins - 1 each. While the distinct values of all
// rows fit into max_bins, each has its own bin; otherwise bins hold about the same weight of the
// rows, or of about 200,000 of them, chosen by a hash of their position.
// `weights` has one weight above 0 for each row of `rows`, or is empty: all weights are equal.
std::vector<std::vector<double>> quantiles(const Columns& table, const Rows& rows,
                                           std::span<const double> weights, std::size_t max_bins,
                                           Team& team);

// The steps of quantiles(), for tables in other memory than the host's.
//
// Rows whose values decide on the edges: all of them, or a sample.
struct EdgeRows {
  bool complete;                      // all rows
  std::vector<RowId> rows;            // rows of the table; empty when complete
  std::vector<std::uint32_t> places;  // their positions among the rows of the fit; empty, too
  std::size_t size;
};
EdgeRows choose_edge_rows(const Rows& rows, Team& team);

// Of more rows than this, those are taken whose hash is below the threshold.
constexpr std::size_t edge_sample_size = 200'000;
inline std::uint64_t edge_threshold(std::size_t n_rows) {
  if (n_rows <= edge_sample_size) return ~std::uint64_t{0};
  return static_cast<std::uint64_t>(static_cast<double>(edge_sample_size) /
                                    static_cast<double>(n_rows) * 0x1p64);
}

// Distinct values of a column, ascending, that has few in the sample: other rows may hold others.
struct FewValues {
  std::size_t column;
  std::vector<double> values;
};

// Edges of dense columns by the values of a sample, and the columns of few values. `sample.rows`
// are rows of `table`; weights are those of all rows of the fit.
std::vector<std::vector<double>> sampled_edges(const Columns& table, const EdgeRows& sample,
                                               std::span<const double> weights,
                                               std::size_t max_bins, Team& team,
                                               std::vector<FewValues>& few);

// A point with a <= point < b, in the middle where there is one; a < b.
double edge_between(double a, double b);

// Edges that split the distinct values, ascending, into at most max_bins bins of about equal
// weight. Values that are heavier than a fair share have a bin of their own. sums[i] is the weight
// of the values 0 to i; it is not read while the values fit into max_bins.
std::vector<double> cut(std::span<const double> values, std::span<const double> sums,
                        std::size_t max_bins);

}  // namespace arboost
