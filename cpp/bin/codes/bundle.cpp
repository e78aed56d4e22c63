// Greedy graph colouring in several orders of the columns. Single-threaded.
#include "bin/codes/bundle.h"

#include <algorithm>
#include <numeric>

namespace arboost {
namespace {

struct Bundle {
  std::vector<std::uint32_t> columns;
  std::uint32_t n_others = 0;
  std::size_t n_conflicts = 0;
  std::vector<std::uint64_t> rows;  // bits: a column is away from its usual code

  bool has(std::uint32_t row) const { return rows[row / 64] >> (row % 64) & 1; }
};

class Colouring {
 public:
  Colouring(const std::vector<BundleColumn>& columns, const BundleLimits& limits)
      : columns_(columns), limits_(limits), bundle_of_(columns.size(), none) {}

  void add(std::uint32_t column) {
    const std::uint32_t position = find(column);
    Bundle& bundle = bundles_[position];
    bundle.n_conflicts += conflicts(bundle, column, ~std::size_t{0});
    for (const std::uint32_t row : columns_[column].rows)
      bundle.rows[row / 64] |= std::uint64_t{1} << (row % 64);
    bundle.n_others += columns_[column].n_others;
    bundle.columns.push_back(column);
    bundle_of_[column] = position;
    if (bundle.n_others >= limits_.most_others) close(position);
  }

  std::size_t size() const { return bundles_.size(); }
  std::vector<std::vector<std::uint32_t>> take() {
    std::vector<std::vector<std::uint32_t>> result;
    for (Bundle& bundle : bundles_) {
      std::sort(bundle.columns.begin(), bundle.columns.end());
      result.push_back(std::move(bundle.columns));
    }
    return result;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // Number of rows in both; counting stops above `most`.
  std::size_t conflicts(const Bundle& bundle, std::uint32_t column, std::size_t most) const {
    std::size_t n = 0;
    for (const std::uint32_t row : columns_[column].rows) {
      n += bundle.has(row) ? 1 : 0;
      if (n > most) break;
    }
    return n;
  }

  void close(std::uint32_t position) {
    std::erase(open_, position);
    bundles_[position].rows = {};
  }

  bool takes(std::uint32_t position, std::uint32_t column) const {
    const Bundle& bundle = bundles_[position];
    if (bundle.n_others + columns_[column].n_others > limits_.most_others) return false;
    const std::size_t left = limits_.most_conflicts - bundle.n_conflicts;
    return conflicts(bundle, column, left) <= left;
  }

  // Neighbours in the table first: columns that belong together are mostly side by side.
  std::uint32_t find(std::uint32_t column) {
    const auto takes_open = [&](std::uint32_t position) {
      return position != none && !bundles_[position].rows.empty() && takes(position, column);
    };
    if (column > 0 && takes_open(bundle_of_[column - 1])) return bundle_of_[column - 1];
    if (column + 1 < columns_.size() && takes_open(bundle_of_[column + 1]))
      return bundle_of_[column + 1];
    for (const std::uint32_t position : open_)
      if (takes(position, column)) return position;
    if (open_.size() == limits_.most_open) close(open_.front());
    const auto position = static_cast<std::uint32_t>(bundles_.size());
    bundles_.emplace_back().rows.resize(limits_.n_rows / 64 + 1, 0);
    open_.push_back(position);
    return position;
  }

  const std::vector<BundleColumn>& columns_;
  const BundleLimits& limits_;
  std::vector<Bundle> bundles_;
  std::vector<std::uint32_t> bundle_of_;
  std::vector<std::uint32_t> open_;  // bundles that may take more columns, the oldest first
};

// Degree of each column in the conflict graph, with every edge counted once for each conflicting
// row.
std::vector<std::uint64_t> degrees(const std::vector<BundleColumn>& columns, std::size_t n_rows) {
  std::vector<std::uint32_t> columns_of_row(n_rows, 0);
  for (const BundleColumn& column : columns)
    for (const std::uint32_t row : column.rows) ++columns_of_row[row];
  std::vector<std::uint64_t> degree;
  for (const BundleColumn& column : columns) {
    std::uint64_t n = 0;
    for (const std::uint32_t row : column.rows) n += columns_of_row[row] - 1;
    degree.push_back(n);
  }
  return degree;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> bundle(const std::vector<BundleColumn>& columns,
                                               const BundleLimits& limits) {
  std::vector<std::uint32_t> as_given(columns.size());
  std::iota(as_given.begin(), as_given.end(), 0u);
  const std::vector<std::uint64_t> degree = degrees(columns, limits.n_rows);
  std::vector<std::uint32_t> by_degree = as_given, by_size = as_given;
  std::stable_sort(by_degree.begin(), by_degree.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return degree[a] > degree[b]; });
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::uint32_t a, std::uint32_t b) {
    return columns[a].rows.size() > columns[b].rows.size();
  });
  std::vector<std::vector<std::uint32_t>> best;
  for (const auto* order : {&as_given, &by_degree, &by_size}) {
    Colouring colouring(columns, limits);
    for (const std::uint32_t column : *order) colouring.add(column);
    if (best.empty() || colouring.size() < best.size()) best = colouring.take();
  }
  return best;
}

}  // namespace arboost
