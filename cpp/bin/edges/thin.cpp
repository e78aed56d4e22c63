// Stored values of a sparse column -> distinct values with weights. Cost: a sort of the stored
// values; single-threaded, one call a column.
#include "bin/edges/thin.h"

#include <algorithm>
#include <cmath>

namespace arboost {

RowNumbers::RowNumbers(const Columns& table, const Rows& rows) {
  if (rows.is_all()) return;
  numbers_.assign(table.n_rows, nowhere);
  for (std::size_t i = 0; i < rows.size(); ++i) numbers_[rows[i]] = static_cast<std::uint32_t>(i);
}

ThinSampler::ThinSampler(const Columns& table, const Rows& rows,
                         std::span<const std::uint32_t> places,
                         std::span<const std::int64_t> weights)
    : numbers_(table, rows),
      weights_(weights),
      n_rows_(rows.size()),
      sample_size_(places.empty() ? rows.size() : places.size()) {
  if (!places.empty()) in_sample_.assign(rows.size(), 0);
  for (const std::uint32_t position : places) in_sample_[position] = 1;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (in_sample_.empty() || in_sample_[i] != 0) sample_weight_ += weights[i];
}

// Calls use(row, value) for the stored values of rows of the fit, until it returns false.
template <class Use>
void ThinSampler::each_stored(const Column& column, Use use) const {
  double block[block_rows];
  const Sparse& sparse = *column.sparse;
  for (std::size_t begin = 0; begin < sparse.size; begin += block_rows) {
    const std::size_t n = std::min(block_rows, sparse.size - begin);
    read_stored(column, begin, begin + n, block);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t row = numbers_.of(sparse.rows[begin + i]);
      if (row != RowNumbers::nowhere && !use(row, block[i])) return;
    }
  }
}

void ThinSampler::run(const Column& column, Scratch& scratch, std::vector<double>& values,
                      std::vector<double>& sums) const {
  auto& items = scratch.items;
  items.clear();
  const auto weight = [&](std::uint32_t row) { return weights_.empty() ? 1 : weights_[row]; };
  // Weight of the rows without a stored value.
  std::int64_t fill_weight =
      weights_.empty() ? static_cast<std::int64_t>(sample_size_) : sample_weight_;
  std::size_t n_fill = sample_size_;
  each_stored(column, [&](std::uint32_t row, double value) {
    if (!in_sample_.empty() && in_sample_[row] == 0) return true;
    fill_weight -= weight(row);
    --n_fill;
    if (!std::isnan(value)) items.push_back({key_of(value), row});
    return true;
  });
  scratch.spare.resize(items.size());
  sort_by_key<Placed<std::uint64_t>>(items, scratch.spare);
  values.clear();
  sums.clear();
  std::int64_t sum = 0;
  const auto add = [&](std::uint64_t key, std::int64_t more) {
    sum += more;
    if (values.empty() || key_of(values.back()) != key) {
      values.push_back(value_of(key));
      sums.emplace_back();
    }
    sums.back() = static_cast<double>(sum);
  };
  const double fill = fill_of(column);
  const bool has_fill = n_fill > 0 && !std::isnan(fill);
  std::size_t i = 0;
  for (; has_fill && i < items.size() && items[i].key <= key_of(fill); ++i)
    add(items[i].key, weight(items[i].position));
  if (has_fill) add(key_of(fill), fill_weight);
  for (; i < items.size(); ++i) add(items[i].key, weight(items[i].position));
}

bool ThinSampler::find_values(const Column& column, std::size_t most,
                              std::vector<double>& values) const {
  KeySet keys;
  std::size_t n_fill = n_rows_;
  each_stored(column, [&](std::uint32_t, double value) {
    --n_fill;
    if (!std::isnan(value)) keys.insert(key_of(value));
    return keys.size() <= most;
  });
  const double fill = fill_of(column);
  if (n_fill > 0 && !std::isnan(fill)) keys.insert(key_of(fill));
  if (keys.size() > most) return false;
  values.clear();
  for (const std::uint64_t key : keys.keys()) values.push_back(value_of(key));
  std::sort(values.begin(), values.end());
  return true;
}

}  // namespace arboost
