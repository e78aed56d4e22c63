// Columns -> ranks. Cost: a radix sort of every column, about 20 ns a cell; temporary memory: 16 or
// 32 bytes for each row and thread. Parallel over features.
#include "bin/rank.h"

#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "base/require.h"
#include "bin/edges/keys.h"
#include "bin/edges/quantiles.h"  // edge_between

namespace arboost {
namespace {

using LargestItem = Placed<std::uint64_t>;

struct Scratch {
  explicit Scratch(std::size_t n_rows) : items(n_rows), spare(n_rows) {}
  Buffer<LargestItem> items, spare;
};

template <class Item>
class Ranker {
  using Number = std::conditional_t<sizeof(typename Item::Key) == 4, float, double>;

 public:
  Ranker(Ranks& ranks, std::size_t feature, Scratch& scratch)
      : ranks_(ranks),
        feature_(feature),
        places_(ranks.places.data() + feature * ranks.n_rows),
        items_(reinterpret_cast<Item*>(scratch.items.data())),
        spare_(reinterpret_cast<Item*>(scratch.spare.data())) {}

  void run(const Column& column, const Rows& rows) {
    read(column, rows);
    sort_by_key<Item>({items_, n_present_}, {spare_, n_present_});
    const std::uint32_t n_values = number();
    auto* codes = ranks_.column<std::uint32_t>(feature_);
    for (std::size_t i = n_present_; i < ranks_.n_rows; ++i) codes[places_[i]] = n_values;
    ranks_.n_bins[feature_] = n_values;
    ranks_.n_present[feature_] = static_cast<std::uint32_t>(n_present_);
    ranks_.has_missing[feature_] = n_present_ < ranks_.n_rows ? 1 : 0;
  }

 private:
  // Items of the values that are not missing; rows with missing values fill the places from the
  // back, and are then reversed.
  void read(const Column& column, const Rows& rows) {
    double block[block_rows];
    std::size_t n_missing = 0;
    for (std::size_t begin = 0; begin < ranks_.n_rows; begin += block_rows) {
      const std::size_t end = std::min(begin + block_rows, ranks_.n_rows);
      rows.read(column, begin, end, block);
      for (std::size_t row = begin; row < end; ++row) {
        const double value = block[row - begin];
        const bool missing = std::isnan(value);
        items_[n_present_] = {key_of(static_cast<Number>(value)), static_cast<std::uint32_t>(row)};
        places_[ranks_.n_rows - 1 - n_missing] = static_cast<std::uint32_t>(row);
        n_present_ += missing ? 0 : 1;
        n_missing += missing ? 1 : 0;
        if (n_present_ == ranks_.n_rows || n_missing == ranks_.n_rows)
          break;  // no position is left
      }
    }
    std::reverse(places_ + n_present_, places_ + ranks_.n_rows);
  }

  // Places, codes and edges from the sorted items; returns the number of distinct values. At least
  // one bin, as elsewhere, where all values are missing.
  std::uint32_t number() {
    auto* codes = ranks_.column<std::uint32_t>(feature_);
    auto& edges = ranks_.edges[feature_];
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < n_present_; ++i) {
      const bool fresh = i == 0 || items_[i].key != items_[i - 1].key;
      if (fresh && i > 0) {
        edges.push_back(edge_between(value_of(items_[i - 1].key), value_of(items_[i].key)));
        ++rank;
      }
      places_[i] = items_[i].position | (fresh ? Ranks::begins : 0);
      codes[items_[i].position] = rank;
    }
    return rank + 1;
  }

  Ranks& ranks_;
  std::size_t feature_;
  std::uint32_t* places_;
  Item *items_, *spare_;
  std::size_t n_present_ = 0;
};

// The codes of a category's levels, and its rows by code: a counting sort.
void rank_levels(const Column& column, const Rows& rows, std::uint32_t n_levels,
                 std::size_t feature, Ranks& ranks) {
  auto* codes = ranks.column<std::uint32_t>(feature);
  std::vector<std::uint32_t> first(n_levels + 2, 0);  // position of each code's first row
  double block[block_rows];
  for (std::size_t begin = 0; begin < ranks.n_rows; begin += block_rows) {
    const std::size_t end = std::min(begin + block_rows, ranks.n_rows);
    rows.read(column, begin, end, block);
    for (std::size_t row = begin; row < end; ++row) {
      const double value = block[row - begin];
      const bool known = value >= 0 && value < n_levels && value == std::floor(value);
      codes[row] = known ? static_cast<std::uint32_t>(value) : n_levels;
      ++first[codes[row] + 1];
    }
  }
  ranks.n_present[feature] = static_cast<std::uint32_t>(ranks.n_rows) - first[n_levels + 1];
  for (std::uint32_t code = 0; code <= n_levels; ++code) first[code + 1] += first[code];
  std::vector<std::uint32_t> next = first;
  std::uint32_t* places = ranks.places.data() + feature * ranks.n_rows;
  for (std::size_t row = 0; row < ranks.n_rows; ++row) {
    const std::uint32_t code = codes[row], position = next[code]++;
    const bool begins = position == first[code] && code < n_levels;
    places[position] = static_cast<std::uint32_t>(row) | (begins ? Ranks::begins : 0);
  }
  ranks.n_bins[feature] = n_levels;
  ranks.has_missing[feature] = ranks.n_present[feature] < ranks.n_rows ? 1 : 0;
  for (std::uint32_t level = 1; level < n_levels; ++level)
    ranks.edges[feature].push_back(level - 0.5);
}

void check_levels(std::span<const std::uint32_t> n_levels, std::size_t n_features) {
  if (!n_levels.empty() && n_levels.size() != n_features)
    throw std::invalid_argument("Ranks need the number of levels of every column.");
  for (const std::uint32_t n : n_levels)
    if (n > 255) throw std::invalid_argument("A category has at most 255 levels.");
}

}  // namespace

Ranks rank(const Columns& table, const Rows& rows, std::span<const std::uint32_t> n_levels,
           Team& team) {
  check_levels(n_levels, table.columns.size());
  check_row_count(rows.size());
  Ranks ranks;
  ranks.n_rows = rows.size();
  ranks.n_features = table.columns.size();
  ranks.give_own_places();
  ranks.width = 4;
  ranks.n_bins.resize(ranks.n_features);
  ranks.n_present.resize(ranks.n_features);
  ranks.has_missing.resize(ranks.n_features);
  ranks.edges.resize(ranks.n_features);
  for (const std::uint32_t n : n_levels) ranks.is_category.push_back(n > 0 ? 1 : 0);
  ranks.by_column = Buffer<std::uint8_t>(ranks.n_rows * ranks.n_features * sizeof(std::uint32_t));
  ranks.places = Buffer<std::uint32_t>(ranks.n_rows * ranks.n_features);
  std::vector<std::unique_ptr<Scratch>> scratch(static_cast<std::size_t>(team.size()));
  team.for_chunks(0, ranks.n_features, 1, [&](std::size_t feature, std::size_t, int member) {
    const Column& column = table.columns[feature];
    if (ranks.has_levels(feature))
      return rank_levels(column, rows, n_levels[feature], feature, ranks);
    auto& memory = scratch[static_cast<std::size_t>(member)];
    if (memory == nullptr) memory = std::make_unique<Scratch>(ranks.n_rows);
    if (fits_float32(column.type)) {
      Ranker<Placed<std::uint32_t>>(ranks, feature, *memory).run(column, rows);
    } else {
      Ranker<LargestItem>(ranks, feature, *memory).run(column, rows);
    }
  });
  return ranks;
}

}  // namespace arboost
