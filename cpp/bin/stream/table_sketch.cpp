// Cost: each batch is read once in columns of few values, and in the sampled rows elsewhere.
// Parallel over columns.
#include "bin/stream/table_sketch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "base/random.h"
#include "base/require.h"
#include "bin/edges/quantiles.h"

namespace arboost {
namespace {

// Rows in the sample before those above the threshold of the rows so far are dropped.
constexpr std::size_t most_sampled = edge_sample_size + edge_sample_size / 4;

bool is_below(std::uint64_t position, std::uint64_t threshold) {
  return counter_hash(0, Purpose::quantile_rows, 0, position) < threshold;
}

}  // namespace

TableSketch::TableSketch(std::size_t n_columns, std::size_t max_bins,
                         const std::optional<Share>& share)
    : max_bins_(max_bins),
      is_share_(share.has_value()),
      first_(is_share_ ? share->first : 0),
      n_all_(is_share_ ? share->second : 0),
      columns_(n_columns) {
  check_row_count(n_all_);
}

void TableSketch::push(const Columns& table, const Rows& rows, Team& team) {
  if (table.columns.size() != columns_.size())
    throw std::invalid_argument("A batch has another number of columns than the first.");
  const std::size_t first = first_ + n_rows_;
  check_row_count(first + rows.size());
  if (is_share_ && first + rows.size() > n_all_)
    throw std::invalid_argument("A share has more rows than there are in all.");
  n_rows_ += rows.size();
  std::vector<RowId> chosen;
  const std::size_t n_rows = n_sampled_of();
  const std::uint64_t threshold = edge_threshold(n_rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (n_rows > edge_sample_size && !is_below(first + i, threshold)) continue;
    chosen.push_back(rows[i]);
    places_.push_back(static_cast<std::uint32_t>(first + i));
  }
  team.for_chunks(0, columns_.size(), 1, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t c = begin; c < end; ++c) {
      see(table.columns[c], rows, columns_[c]);
      keep(table.columns[c], chosen, columns_[c]);
    }
  });
  if (!is_share_ && places_.size() > most_sampled) drop_rows(threshold, team);
}

// Distinct values, until they are too many.
void TableSketch::see(const Column& column, const Rows& rows, SampledColumn& sampled) const {
  double block[block_rows];
  for (std::size_t begin = 0; begin < rows.size() && !sampled.too_many; begin += block_rows) {
    const std::size_t n = std::min(block_rows, rows.size() - begin);
    rows.read(column, begin, begin + n, block);
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isnan(block[i]))
        sampled.any_missing = true;
      else
        sampled.seen.insert(key_of(block[i]));
    }
    if (sampled.seen.size() > max_bins_) {
      sampled.too_many = true;
      sampled.seen = {};
    }
  }
}

void TableSketch::widen(SampledColumn& sampled) {
  if (sampled.is_wide) return;
  sampled.wide->assign(sampled.narrow->begin(), sampled.narrow->end());
  sampled.narrow->clear();
  sampled.narrow->shrink_to_fit();
  sampled.is_wide = true;
}

void TableSketch::keep(const Column& column, std::span<const RowId> rows,
                       SampledColumn& sampled) const {
  if (column.type != Type::null && !fits_float32(column.type)) widen(sampled);
  sampled.visit([&](auto& values) {
    const std::size_t size = values->size() + rows.size();
    if (size > values->capacity())
      values->reserve(std::max(size, std::min(2 * size, most_sampled + rows.size())));
  });
  double block[block_rows];
  for (std::size_t begin = 0; begin < rows.size(); begin += block_rows) {
    const std::size_t n = std::min(block_rows, rows.size() - begin);
    read_rows(column, rows.subspan(begin, n), block);
    sampled.visit([&](auto& values) {
      using Number = typename std::remove_reference_t<decltype(*values)>::value_type;
      for (std::size_t i = 0; i < n; ++i) {
        sampled.any_missing |= std::isnan(block[i]);
        values->push_back(static_cast<Number>(block[i]));
      }
    });
  }
}

void TableSketch::drop_rows(std::uint64_t threshold, Team& team) {
  n_filtered_ = n_rows_;
  std::vector<std::uint8_t> stays(places_.size());
  for (std::size_t i = 0; i < stays.size(); ++i) stays[i] = is_below(places_[i], threshold) ? 1 : 0;
  const auto compact = [&](auto& values) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {  // no branch: it would be a toss of a coin
      values[n] = values[i];
      n += stays[i];
    }
    values.resize(n);
  };
  compact(places_);
  team.for_chunks(0, columns_.size(), 1, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t c = begin; c < end; ++c)
      columns_[c].visit([&](auto& values) { compact(*values); });
  });
}

void TableSketch::finish() {
  if (is_share_ || n_rows_ <= edge_sample_size || n_rows_ == n_filtered_) return;
  Team team(1);
  drop_rows(edge_threshold(n_rows_), team);
}

void TableSketch::replace_codes(std::size_t column, std::span<const double> codes) {
  const auto replaced = [&](double value) {
    const auto code = static_cast<std::size_t>(value);
    if (code >= codes.size()) throw std::invalid_argument("A level code beyond the levels.");
    return codes[code];
  };
  SampledColumn& sampled = columns_.at(column);
  const auto is_narrow = [](double code) {
    return std::isnan(code) || static_cast<double>(static_cast<float>(code)) == code;
  };
  if (!std::all_of(codes.begin(), codes.end(), is_narrow)) widen(sampled);
  sampled.visit([&](auto& values) {
    for (auto& value : *values)
      if (!std::isnan(value))
        value = static_cast<std::remove_reference_t<decltype(value)>>(replaced(value));
  });
  KeySet seen;
  for (const std::uint64_t key : sampled.seen.keys()) {
    const double value = replaced(value_of(key));
    if (!std::isnan(value)) seen.insert(key_of(value));
  }
  sampled.seen = std::move(seen);
}

void TableSketch::add_column(std::span<const float> values, std::size_t source) {
  finish();
  if (values.size() != places_.size())
    throw std::invalid_argument("A derived column needs a value for each sampled row.");
  SampledColumn sampled;
  sampled.any_missing = columns_.at(source).any_missing;
  sampled.too_many = true;
  sampled.narrow->assign(values.begin(), values.end());
  columns_.push_back(std::move(sampled));
}

Columns TableSketch::sample() {
  finish();
  Columns table;
  table.n_rows = places_.size();
  for (SampledColumn& column : columns_)
    column.visit([&](auto& values) {
      table.columns.push_back(whole_column(column.is_wide ? Type::float64 : Type::float32,
                                           sizeof((*values)[0]), values->data(), table.n_rows));
      table.owners.push_back(values);
    });
  return table;
}

const std::vector<std::uint32_t>& TableSketch::places() {
  finish();
  return places_;
}

Distinct TableSketch::distinct(std::size_t column) const {
  const SampledColumn& sampled = columns_.at(column);
  if (sampled.too_many) return std::nullopt;
  std::vector<double> values;
  for (const std::uint64_t key : sampled.seen.keys()) values.push_back(value_of(key));
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::vector<double>> TableSketch::edges(std::span<const double> weights,
                                                    const std::vector<std::uint8_t>& is_level,
                                                    Team& team) {
  const Columns all = sample();
  Columns numbers;
  numbers.n_rows = all.n_rows;
  std::vector<std::size_t> index;
  std::vector<Distinct> values;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (is_level.at(c) != 0) continue;
    index.push_back(c);
    numbers.columns.push_back(all.columns[c]);
    values.push_back(distinct(c));
  }
  std::vector<std::vector<double>> edges_of_columns =
      sketch_edges(numbers, places_, n_sampled_of(), weights, values, max_bins_, team);
  std::vector<std::vector<double>> edges(columns_.size());
  for (std::size_t k = 0; k < index.size(); ++k) edges[index[k]] = std::move(edges_of_columns[k]);
  return edges;
}

std::vector<std::vector<double>> sketch_edges(const Columns& sample,
                                              std::span<const std::uint32_t> places,
                                              std::size_t n_rows, std::span<const double> weights,
                                              const std::vector<Distinct>& distinct,
                                              std::size_t max_bins, Team& team) {
  EdgeRows rows{n_rows <= edge_sample_size, {}, {}, sample.n_rows};
  if (!rows.complete) {
    rows.places.assign(places.begin(), places.end());
    rows.rows.resize(sample.n_rows);
    std::iota(rows.rows.begin(), rows.rows.end(), RowId{0});
  }
  std::vector<FewValues> few;
  std::vector<std::vector<double>> edges =
      sampled_edges(sample, rows, weights, max_bins, team, few);
  for (std::size_t c = 0; c < edges.size(); ++c)
    if (distinct.at(c)) edges[c] = cut(*distinct[c], {}, max_bins);
  return edges;
}

std::vector<std::uint8_t> TableSketch::has_missing() const {
  std::vector<std::uint8_t> missing;
  for (const SampledColumn& column : columns_) missing.push_back(column.any_missing ? 1 : 0);
  return missing;
}

}  // namespace arboost
