// Columns -> edges. Cost: a sort of at most 200,000 sampled values a column, and one scan of
// columns with few distinct values in the sample. Parallel over groups of columns, then over rows;
// the edges depend on neither.
#include "bin/edges/quantiles.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>  // atomics do not move
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/buffer.h"
#include "base/require.h"
#include "bin/edges/keys.h"
#include "bin/edges/lookup.h"
#include "bin/edges/row_sample.h"
#include "bin/edges/thin.h"

namespace arboost {
namespace {

// ---- distinct values with weights -> edges ----
//
//   values   -3 -2 -1  0 ########  1  2  3  4        # weight of a heavy value
//   bins    |   2    |      1    |     3     |
//
// Heavy values get one bin each; the runs of light values between them share the remaining bins.
// Linear in the number of values; single-threaded, one call a column.

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

// ---- columns -> distinct values with weights ----

// Type of the items to sort: 32-bit keys where float32 holds every value exactly, and positions
// only where weights are looked up.
template <class Visitor>
void with_item(Type type, bool weighted, Visitor&& visitor) {
  if (fits_float32(type)) {
    if (weighted) return visitor.template operator()<Placed<std::uint32_t>>();
    return visitor.template operator()<Plain<std::uint32_t>>();
  }
  if (weighted) return visitor.template operator()<Placed<std::uint64_t>>();
  return visitor.template operator()<Plain<std::uint64_t>>();
}
using LargestItem = Placed<std::uint64_t>;

// Memory of one thread, kept from one group of columns to the next.
struct Scratch {
  Buffer<LargestItem> items, spare;  // `items`: one stretch for each column of the group
  std::vector<double> values, sums;  // distinct values of a column, running sums of their weights
  ThinSampler::Scratch thin;
};

// Weights as integers with a common power of two: sums do not depend on the row order, which sparse
// columns do not have.
std::vector<std::int64_t> whole_weights(std::span<const double> weights) {
  double total = 0;
  for (const double w : weights) total += w;
  const int exponent = weights.empty() ? 0 : 60 - std::ilogb(total);
  std::vector<std::int64_t> whole;
  for (const double w : weights) whole.push_back(std::llround(std::ldexp(w, exponent)));
  return whole;
}

// Sampled values of some columns -> distinct values with weights.
class Sampler {
 public:
  Sampler(const Columns& table, const Rows& rows, std::span<const std::int64_t> weights,
          const EdgeRows& sample)
      : table_(table), rows_(rows), weights_(weights), sample_(sample) {}

  // Calls done(c, distinct values, running sums of weights) for some columns. They are read
  // together, because neighbours share cache lines in a row-major table.
  template <class Done>
  void run(std::span<const std::size_t> columns, Scratch& scratch, const Done& done) const {
    const std::size_t n = sample_.size;
    if (scratch.items.size() < columns.size() * n) {
      scratch.items = Buffer<LargestItem>(columns.size() * n);
      scratch.spare = Buffer<LargestItem>(n);
    }
    std::vector<std::size_t> n_values(columns.size());  // values that are not missing
    for (std::size_t first = 0; first < n; first += block_rows) {
      const std::size_t last = std::min(first + block_rows, n);
      for (std::size_t k = 0; k < columns.size(); ++k)
        n_values[k] += read(table_.columns[columns[k]], first, last, scratch.items.data() + k * n,
                            n_values[k]);
    }
    for (std::size_t k = 0; k < columns.size(); ++k) {
      with_item(table_.columns[columns[k]].type, !weights_.empty(), [&]<class Item>() {
        auto* items = reinterpret_cast<Item*>(scratch.items.data() + k * n);
        auto* spare = reinterpret_cast<Item*>(scratch.spare.data());
        sort_by_key<Item>({items, n_values[k]}, {spare, n});
        collect<Item>({items, n_values[k]}, scratch);
      });
      done(columns[k], scratch.values, scratch.sums);
    }
  }

  const EdgeRows& sample() const { return sample_; }

 private:
  // Appends the values of sample rows [first, last) to the `size` items that are there already and
  // returns how many were not missing.
  std::size_t read(const Column& column, std::size_t first, std::size_t last, LargestItem* memory,
                   std::size_t size) const {
    double block[block_rows];
    if (sample_.complete) {
      rows_.read(column, first, last, block);
    } else {
      read_rows(column, std::span(sample_.rows).subspan(first, last - first), block);
    }
    const std::size_t before = size;
    with_item(column.type, !weights_.empty(), [&]<class Item>() {
      using Number = std::conditional_t<sizeof(typename Item::Key) == 4, float, double>;
      auto* items = reinterpret_cast<Item*>(memory);
      for (std::size_t i = 0; i < last - first; ++i) {
        Item item;
        item.key = key_of(static_cast<Number>(block[i]));
        if constexpr (requires { item.position; })
          item.position =
              static_cast<std::uint32_t>(sample_.complete ? first + i : sample_.places[first + i]);
        items[size] = item;
        size += std::isnan(block[i]) ? 0u : 1u;
      }
    });
    return size - before;
  }

  // Sorted items -> distinct values with running sums of their weights.
  template <class Item>
  void collect(std::span<const Item> items, Scratch& scratch) const {
    scratch.values.resize(items.size());
    scratch.sums.resize(items.size());
    std::size_t n = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if constexpr (requires { items[i].position; }) {
        sum += weights_[items[i].position];
      } else {
        ++sum;
      }
      // Written for every item, kept for the last one of each value: no branch to mispredict.
      scratch.values[n] = value_of(items[i].key);
      scratch.sums[n] = static_cast<double>(sum);
      n += i + 1 == items.size() || items[i].key != items[i + 1].key ? 1u : 0u;
    }
    scratch.values.resize(n);
    scratch.sums.resize(n);
  }

  const Columns& table_;
  const Rows& rows_;
  std::span<const std::int64_t> weights_;
  const EdgeRows& sample_;
};

// A column with few distinct values in the sample; rows outside the sample may hold others.
struct Candidate {
  Candidate(const FewValues& few, const std::vector<double>& edges, std::size_t n_rows)
      : column(few.column), known(few.values), lookup(edges, n_rows) {
    known.resize(known.size() + 2, std::numeric_limits<double>::quiet_NaN());  // code of missing
  }
  std::size_t column;
  std::vector<double> known;  // by code
  Lookup<std::uint16_t> lookup;
  std::atomic<bool> too_many = false;
};

// Scans all rows of the candidates. Those whose values fit have their edges replaced by exact ones.
void complete(const Columns& table, const Rows& rows, const std::vector<FewValues>& few,
              std::size_t max_bins, Team& team, std::vector<std::vector<double>>& edges) {
  if (few.empty()) return;
  std::deque<Candidate> candidates;
  for (const FewValues& column_values : few)
    candidates.emplace_back(column_values, edges[column_values.column], rows.size());
  std::vector<std::vector<KeySet>> seen(static_cast<std::size_t>(team.size()),
                                        std::vector<KeySet>(candidates.size()));
  const auto scan = [&](Candidate& candidate, std::size_t begin, std::size_t end, KeySet& others) {
    double block[block_rows];
    std::uint32_t buckets[block_rows];
    std::uint16_t codes[block_rows];
    rows.read(table.columns[candidate.column], begin, end, block);
    candidate.lookup.codes(block, end - begin, buckets, codes);
    for (std::size_t i = 0; i < end - begin; ++i)
      if (candidate.known[codes[i]] != block[i] && !std::isnan(block[i]))
        others.insert(key_of(block[i]));
    if (others.size() > max_bins) candidate.too_many.store(true, std::memory_order_relaxed);
  };
  team.for_chunks(0, rows.size(), 64 * block_rows, [&](std::size_t begin, std::size_t end, int m) {
    for (; begin < end; begin += block_rows)
      for (std::size_t k = 0; k < candidates.size(); ++k)
        if (!candidates[k].too_many.load(std::memory_order_relaxed))
          scan(candidates[k], begin, std::min(begin + block_rows, end),
               seen[static_cast<std::size_t>(m)][k]);
  });
  for (std::size_t k = 0; k < candidates.size(); ++k) {
    Candidate& candidate = candidates[k];
    std::vector<double>& values = candidate.known;
    values.resize(values.size() - 2);
    for (const auto& member : seen)
      for (const std::uint64_t key : member[k].keys()) values.push_back(value_of(key));
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (!candidate.too_many.load() && values.size() <= max_bins)
      edges[candidate.column] = cut(values, {}, max_bins);
  }
}

// Edges of dense columns by the sample; returns the columns of few values.
std::vector<FewValues> cut_full(std::span<const std::size_t> columns, const Sampler& sampler,
                                std::size_t max_bins, std::vector<Scratch>& scratch, Team& team,
                                std::vector<std::vector<double>>& edges) {
  const std::size_t n = columns.size();
  std::vector<FewValues> few(n);
  std::vector<std::uint8_t> is_few(n);
  // Small tables are not worth a second thread; groups bound the memory for the sample.
  std::size_t group = std::clamp<std::size_t>(n / (2 * scratch.size()), 1, 8);
  if (sampler.sample().size * n < 20'000) group = std::clamp<std::size_t>(n, 1, 64);
  team.for_chunks(0, n, group, [&](std::size_t begin, std::size_t end, int member) {
    std::size_t k = begin;
    const auto done = [&](std::size_t c, std::span<const double> values,
                          std::span<const double> sums) {
      is_few[k] = values.size() <= max_bins && !sampler.sample().complete ? 1 : 0;
      edges[c] = cut(values, sums, max_bins);
      if (is_few[k] != 0) few[k] = {c, {values.begin(), values.end()}};
      ++k;
    };
    sampler.run(columns.subspan(begin, end - begin), scratch[static_cast<std::size_t>(member)],
                done);
  });
  std::size_t kept = 0;
  for (std::size_t k = 0; k < n; ++k)
    if (is_few[k] != 0) std::swap(few[kept++], few[k]);
  few.resize(kept);
  return few;
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

EdgeRows choose_edge_rows(const Rows& rows, Team& team) {
  const std::size_t n = rows.size();
  if (n <= edge_sample_size) return {true, {}, {}, n};
  EdgeRows sample{false, {}, sample_places(n, Purpose::quantile_rows, edge_threshold(n), team), 0};
  for (const std::uint32_t position : sample.places) sample.rows.push_back(rows[position]);
  sample.size = sample.rows.size();
  return sample;
}

std::vector<std::vector<double>> sampled_edges(const Columns& table, const EdgeRows& sample,
                                               std::span<const double> weights,
                                               std::size_t max_bins, Team& team,
                                               std::vector<FewValues>& few) {
  std::vector<std::vector<double>> edges(table.columns.size());
  std::vector<std::size_t> columns(table.columns.size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  std::vector<Scratch> scratch(static_cast<std::size_t>(team.size()));
  const std::vector<std::int64_t> whole = whole_weights(weights);
  const Rows all(table.n_rows, nullptr);
  few = cut_full(columns, Sampler(table, all, whole, sample), max_bins, scratch, team, edges);
  return edges;
}

std::vector<std::vector<double>> quantiles(const Columns& table, const Rows& rows,
                                           std::span<const double> weights, std::size_t max_bins,
                                           Team& team) {
  check_row_count(rows.size());
  const std::size_t n_columns = table.columns.size();
  std::vector<std::vector<double>> edges(n_columns);
  std::vector<std::size_t> full, thin;
  for (std::size_t c = 0; c < n_columns; ++c) (table.columns[c].sparse ? thin : full).push_back(c);
  const EdgeRows sample = choose_edge_rows(rows, team);
  const std::vector<std::int64_t> whole = whole_weights(weights);
  std::vector<Scratch> scratch(static_cast<std::size_t>(team.size()));
  const std::vector<FewValues> few =
      cut_full(full, Sampler(table, rows, whole, sample), max_bins, scratch, team, edges);
  complete(table, rows, few, max_bins, team, edges);
  if (thin.empty()) return edges;
  const ThinSampler sampler(table, rows, sample.places, whole);
  team.for_chunks(0, thin.size(), 16, [&](std::size_t begin, std::size_t end, int member) {
    Scratch& memory = scratch[static_cast<std::size_t>(member)];
    for (const std::size_t c : std::span(thin).subspan(begin, end - begin)) {
      sampler.run(table.columns[c], memory.thin, memory.values, memory.sums);
      edges[c] = cut(memory.values, memory.sums, max_bins);
      if (!sample.complete && memory.values.size() <= max_bins &&
          sampler.find_values(table.columns[c], max_bins, memory.values))
        edges[c] = cut(memory.values, {}, max_bins);
    }
  });
  return edges;
}

}  // namespace arboost
