// Columns and edges -> storage plan. Cost: encoding about 30,000 rows of the columns with few
// codes, and the stored values of sparse columns. Parallel over columns.
#include "bin/codes/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>  // back_inserter
#include <numeric>

#include "bin/edges/lookup.h"
#include "bin/edges/row_sample.h"

namespace arboost {
namespace {

constexpr std::size_t sample_size = 30'000;

// Columns with more codes leave no room in a byte for others.
constexpr std::size_t most_shared_codes = 128;

// Least share of rows with the usual code for a column to be bundled.
constexpr double least_usual = 0.5;

// Share of rows away from the usual code in a bundle below which sparse storage is cheaper: a row
// costs one byte and one addition in a stored column, and three to six bytes and an addition for
// each sparsely stored code.
constexpr double least_filled = 0.25;

// Least number of rows for each stored value of a column that is stored sparsely. A stored value
// takes about eight bytes, and a cell of a full column two; but full columns are several times
// faster, so that they may take up to twice the memory.
constexpr std::size_t rows_per_stored_value = 8;

// Columns stored in full that cost as much as the lists of a row, be they long or short: a list is
// on cache lines of its own. Tables of few rows are in the cache.
constexpr std::size_t columns_of_list = 16, cached_rows = 65536;

// Rows of the table whose saved additions pay for folding one slot: every node of a tree folds the
// slots of a shared column into its digits, but adds only its own rows.
constexpr std::size_t rows_per_folded_slot = 128;

// Least number of rows for which bundling pays.
constexpr std::size_t least_bundled_rows = 512;

constexpr std::uint32_t nowhere = ~std::uint32_t{0};

// Rows sampled for the plan.
struct Sample {
  std::span<const RowId> rows;         // of the table
  std::vector<std::uint32_t> numbers;  // of table rows, `nowhere` for those outside; or empty
};

// Statistics of a column in the sample.
struct Seen {
  std::uint32_t usual = 0, n_codes = 0;
  bool often_usual = false;
  std::vector<std::uint32_t> others;  // numbers of rows without the usual code, where that is often
};

class Observer {
 public:
  Observer(const Columns& table, const Edges& edges, const Sample& sample)
      : table_(table), edges_(edges), sample_(sample) {}

  // Columns of the same rows are read together: neighbours share cache lines in a row-major table.
  void observe(std::span<const std::uint32_t> features, std::vector<Seen>& seen) const {
    std::vector<std::vector<std::uint8_t>> codes(features.size());
    std::vector<Lookup<std::uint8_t>> lookups;
    for (std::size_t k = 0; k < features.size(); ++k) {
      codes[k].resize(sample_.rows.size());
      lookups.emplace_back(edges_[features[k]], sample_.rows.size());
    }
    double values[block_rows];
    std::uint32_t buckets[block_rows];
    for (std::size_t begin = 0; begin < sample_.rows.size(); begin += block_rows) {
      const std::size_t n = std::min(block_rows, sample_.rows.size() - begin);
      for (std::size_t k = 0; k < features.size(); ++k) {
        read_rows(table_.columns[features[k]], std::span(sample_.rows).subspan(begin, n), values);
        lookups[k].codes(values, n, buckets, codes[k].data() + begin);
      }
    }
    for (std::size_t k = 0; k < features.size(); ++k)
      seen[features[k]] = of_codes(features[k], codes[k]);
  }

  Seen observe_thin(std::uint32_t feature) const {
    const Column& column = table_.columns[feature];
    const Lookup<std::uint8_t> lookup(edges_[feature], column.sparse->size);
    double values[block_rows];
    std::uint32_t buckets[block_rows];
    std::uint8_t codes[block_rows], usual;
    const double fill = fill_of(column);
    bool any_missing = lookup.codes(&fill, 1, buckets, &usual);
    Seen seen{usual, 0, true, {}};
    for (std::size_t begin = 0; begin < column.sparse->size; begin += block_rows) {
      const std::size_t n = std::min(block_rows, column.sparse->size - begin);
      read_stored(column, begin, begin + n, values);
      any_missing |= lookup.codes(values, n, buckets, codes);
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t number = sample_.numbers[column.sparse->rows[begin + i]];
        if (number != nowhere && codes[i] != usual) seen.others.push_back(number);
      }
    }
    seen.n_codes = n_bins(feature) + (any_missing ? 1 : 0);
    return seen;
  }

 private:
  std::uint32_t n_bins(std::uint32_t feature) const {
    return static_cast<std::uint32_t>(edges_[feature].size() + 1);
  }

  Seen of_codes(std::uint32_t feature, const std::vector<std::uint8_t>& codes) const {
    std::uint32_t counts[256] = {};
    for (const std::uint8_t code : codes) ++counts[code];
    const auto usual = static_cast<std::uint32_t>(std::max_element(counts, counts + 256) - counts);
    const std::uint32_t missing = n_bins(feature);
    Seen seen{usual, missing + (counts[missing] > 0 ? 1 : 0), false, {}};
    seen.often_usual = counts[usual] >= least_usual * static_cast<double>(codes.size());
    if (!seen.often_usual) return seen;
    for (std::size_t i = 0; i < codes.size(); ++i)
      if (codes[i] != usual) seen.others.push_back(static_cast<std::uint32_t>(i));
    return seen;
  }

  const Columns& table_;
  const Edges& edges_;
  const Sample& sample_;
};

// Exclusive feature bundling (EFB): columns with few rows away from the usual code -> bundles in
// which hardly any row is away from it in two columns.
//
// A greedy colouring of the conflict graph: each column joins the first bundle that accepts it, and
// the order of columns with fewest bundles wins (Ke et al. 2017, section 4). Conflicts are not
// counted pair by pair: a bundle has a bit for every row in which one of its columns differs from
// its usual code, and a column tests the bits of its own such rows.

struct BundleColumn {
  std::uint32_t feature;
  std::uint32_t n_others;           // number of codes that are not the usual one
  std::vector<std::uint32_t> rows;  // rows with such a code, ascending
};

struct BundleLimits {
  std::size_t n_rows;
  std::uint32_t most_others;    // codes in a bundle, the usual ones apart
  std::size_t most_conflicts;   // rows of a bundle that more than one of its columns has
  std::size_t most_open = 100;  // bundles that a column is tried with; older ones are closed
};

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

// Indices of the columns of each bundle; columns that are alone are bundles of one. Greedy graph
// colouring in several orders of the columns; cost: about the number of all columns' rows, times at
// most most_open.
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

// Bundles of some features, all sparse or all dense; a feature without partners is a bundle of one.
std::vector<DigitPlan> find_digits(const std::vector<std::uint32_t>& features,
                                   std::vector<Seen>& seen, std::size_t n_rows, double rate) {
  std::vector<DigitPlan> digits;
  std::vector<BundleColumn> columns;
  for (const std::uint32_t f : features) {
    if (seen[f].often_usual && seen[f].n_codes > 1)
      columns.push_back({f, seen[f].n_codes - 1, std::move(seen[f].others)});
    else
      digits.push_back({{{f, seen[f].usual, seen[f].n_codes}}});
  }
  const BundleLimits limits{
      .n_rows = n_rows,
      .most_others = 255,
      .most_conflicts = static_cast<std::size_t>(rate * static_cast<double>(n_rows))};
  for (const auto& bundle_columns : bundle(columns, limits)) {
    digits.emplace_back();
    for (const std::uint32_t c : bundle_columns) {
      const std::uint32_t f = columns[c].feature;
      digits.back().shares.push_back({f, seen[f].usual, seen[f].n_codes});
      seen[f].others = std::move(columns[c].rows);
    }
  }
  return digits;
}

double filled(const DigitPlan& digit, const std::vector<Seen>& seen, std::size_t n_rows) {
  std::size_t n = 0;
  for (const Share& share : digit.shares) n += seen[share.feature].others.size();
  return static_cast<double>(n) / static_cast<double>(n_rows);
}

bool has_few(std::span<const double> edges) {
  return edges.size() + 2 <= most_shared_codes;
}

bool lists_pay(std::size_t n_sparse, std::size_t n_rows) {
  return n_sparse > columns_of_list || n_rows < cached_rows;
}

// False where every feature has a stored column of its own.
bool shares(const Edges& edges, const PlanOptions& options, std::size_t n_rows) {
  const bool one_byte = std::all_of(edges.begin(), edges.end(),
                                    [](const auto& column) { return column.size() < 255; });
  return options.bundling && one_byte && n_rows >= least_bundled_rows;
}

}  // namespace

bool is_thin(const Columns& table, std::size_t f, const std::vector<std::uint8_t>& categorical) {
  const Column& column = table.columns[f];
  return column.sparse && column.sparse->size <= table.n_rows / rows_per_stored_value &&
         (categorical.empty() || categorical[f] == 0);
}

StoragePlan plain_plan(const Columns& table, const std::vector<std::uint8_t>& categorical) {
  StoragePlan plan;
  for (std::size_t f = 0; f < table.columns.size(); ++f)
    if (is_thin(table, f, categorical)) plan.sparse.push_back(static_cast<std::uint32_t>(f));
  if (!lists_pay(plan.sparse.size(), table.n_rows)) plan.sparse.clear();
  return plan;
}

std::vector<std::uint32_t> shareable(const Columns& table, const Edges& edges,
                                     const PlanOptions& options, std::size_t n_rows) {
  std::vector<std::uint32_t> features;
  if (!shares(edges, options, n_rows)) return features;
  for (std::uint32_t f = 0; f < table.columns.size(); ++f)
    if (has_few(edges[f]) && !is_thin(table, f, options.categorical)) features.push_back(f);
  return features;
}

std::vector<RowId> choose_plan_rows(const Rows& rows, Team& team) {
  std::vector<RowId> chosen(rows.size() <= sample_size ? rows.size() : 0);
  std::iota(chosen.begin(), chosen.end(), RowId{0});
  if (rows.size() > sample_size) {
    const double share = static_cast<double>(sample_size) / static_cast<double>(rows.size());
    const auto threshold = static_cast<std::uint64_t>(std::min(share, 0.5) * 0x1p64);
    chosen = sample_places(rows.size(), Purpose::bundle_rows, threshold, team);
  }
  for (RowId& row : chosen) row = rows[row];
  return chosen;
}

StoragePlan plan_from(const Columns& table, std::span<const RowId> rows, std::size_t n_rows,
                      const Edges& edges, const PlanOptions& options, Team& team) {
  if (!shares(edges, options, n_rows)) return plain_plan(table, options.categorical);
  StoragePlan plan;
  plan.n_rows = n_rows;
  plan.max_conflict_rate = options.max_conflict_rate;
  const std::vector<std::uint32_t> full = shareable(table, edges, options, n_rows);
  std::vector<std::uint32_t> thin;
  for (std::uint32_t f = 0; f < table.columns.size(); ++f)
    if (is_thin(table, f, options.categorical))
      (has_few(edges[f]) ? thin : plan.sparse).push_back(f);
  Sample sample{rows, {}};
  if (!thin.empty()) {
    sample.numbers.assign(table.n_rows, nowhere);
    for (std::size_t i = 0; i < rows.size(); ++i)
      sample.numbers[rows[i]] = static_cast<std::uint32_t>(i);
  }
  const Observer observer(table, edges, sample);
  std::vector<Seen> seen(table.columns.size());
  team.for_chunks(0, full.size(), 16, [&](std::size_t begin, std::size_t end, int) {
    observer.observe(std::span(full).subspan(begin, end - begin), seen);
  });
  team.for_chunks(0, thin.size(), 64, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) seen[thin[i]] = observer.observe_thin(thin[i]);
  });
  const std::size_t n = rows.size();
  plan.digits = find_digits(full, seen, n, options.max_conflict_rate);
  std::vector<DigitPlan> thin_digits = find_digits(thin, seen, n, options.max_conflict_rate);
  const auto first_rare = std::stable_partition(
      thin_digits.begin(), thin_digits.end(),
      [&](const DigitPlan& digit) { return filled(digit, seen, n) >= least_filled; });
  std::size_t n_sparse = plan.sparse.size();
  for (auto digit = first_rare; digit < thin_digits.end(); ++digit)
    n_sparse += digit->shares.size();
  const bool any_lists = lists_pay(n_sparse, n_rows);
  if (!any_lists) plan.sparse.clear();
  for (auto digit = first_rare; any_lists && digit < thin_digits.end(); ++digit)
    for (const Share& share : digit->shares) plan.sparse.push_back(share.feature);
  std::move(thin_digits.begin(), any_lists ? first_rare : thin_digits.end(),
            std::back_inserter(plan.digits));
  std::sort(plan.sparse.begin(), plan.sparse.end());
  return plan;
}

StoragePlan plan_storage(const Columns& table, const Rows& rows, const Edges& edges,
                         const PlanOptions& options, Team& team) {
  std::vector<RowId> sample;
  // A hash of every row: not where no column is read.
  if (table.has_sparse() || !shareable(table, edges, options, rows.size()).empty())
    sample = choose_plan_rows(rows, team);
  return plan_from(table, sample, rows.size(), edges, options, team);
}

// Best-fit packing, largest digits first.
std::vector<std::vector<std::uint32_t>> StoragePlan::columns() const {
  std::vector<std::uint32_t> order(digits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return digits[a].radix() > digits[b].radix();
  });
  std::vector<std::vector<std::uint32_t>> columns;
  std::vector<std::vector<std::uint32_t>> with_free_codes(
      257);  // columns, by how often a code fits in
  for (const std::uint32_t d : order) {
    const std::uint32_t radix = digits[d].radix();
    std::uint32_t n_free = radix;
    while (n_free <= 256 && with_free_codes[n_free].empty()) ++n_free;
    std::uint32_t column = 0;
    if (n_free <= 256) {
      column = with_free_codes[n_free].back();
      with_free_codes[n_free].pop_back();
    } else {
      n_free = 256;
      column = static_cast<std::uint32_t>(columns.size());
      columns.emplace_back();
    }
    columns[column].push_back(d);
    with_free_codes[n_free / radix].push_back(column);
  }
  const auto pays = [this](const std::vector<std::uint32_t>& column) {
    std::size_t slots = 1;
    for (const std::uint32_t d : column) slots *= digits[d].radix();
    return n_rows * (column.size() - 1) >= rows_per_folded_slot * slots;
  };
  for (std::size_t c = 0, n = columns.size(); c < n; ++c) {
    if (columns[c].size() == 1 || pays(columns[c])) continue;
    while (columns[c].size() > 1) {
      columns.push_back({columns[c].back()});
      columns[c].pop_back();
    }
  }
  return columns;
}

}  // namespace arboost
