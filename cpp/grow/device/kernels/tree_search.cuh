// The best split of a node among features, by a group of threads. The same scores, in the same
// order, as in grow/search/split.h and grow/split.
#pragma once

#include "base/random.h"
#include "grow/device/device_tree_records.h"
#include "grow/device/kernels/groups.cuh"
#include "grow/device/kernels/rows.cuh"
#include "grow/search/node_score.h"
#include "grow/search/random_cut.h"
#include "loss/functions.h"

// The best split so far. The score begins as its lower bound.
struct NodeBest {
  double score;
  std::int64_t left_h;  // over all outputs
  std::uint32_t bin, next;
  std::int32_t feature;  // -1: none
  std::uint32_t missing_left, missing_seen;
};

// A split of a feature: the higher score; of equals the lower place.
struct Cut {
  double score;
  std::uint32_t place, unused;
};

inline Cut better_cut(const Cut& a, const Cut& b) {
  return b.score > a.score || (b.score == a.score && b.place < a.place) ? b : a;
}

// Histogram of one feature in shared memory; slots of a lane's bins are in banks of their own.
struct CodeTable {
  static constexpr std::uint32_t size = most_codes + most_codes / 8;
  std::int32_t g[size], h[size];

  static std::uint32_t slot(std::uint32_t code) { return code + code / 8; }
  std::int64_t sum(std::uint32_t code) const { return pack(g[slot(code)], h[slot(code)]); }
};

// The codes of a feature.
struct CodesOf {
  const std::uint8_t* first;
  std::uint64_t stride;
  const std::uint8_t* own_codes;

  std::uint32_t operator[](RowId row) const {
    const std::uint32_t stored = first[row * stride];
    return own_codes == nullptr ? stored : own_codes[stored];
  }
};

// Few rows are on a sector each, in either order; those of the row-major order serve all features.
inline CodesOf codes_of(const DeviceCodes& codes, const TreeColumn& column, std::uint32_t n_rows) {
  constexpr std::uint32_t dense = 16;
  if (n_rows >= codes.n_rows / dense)
    return {codes.by_column + column.store * codes.n_rows, 1, column.own_codes};
  return {codes.by_row + column.store, codes.row_stride, column.own_codes};
}

// Sums of a feature's codes, from the rows of a node.
template <class Group>
struct RowSource {
  const Element* elements;
  std::uint32_t n;
  CodeTable* table;

  template <int n_bins>
  void read(const TreeWork& w, const TreeColumn& column, std::uint32_t, std::uint32_t channel,
            std::int64_t (&own)[n_bins], std::int64_t& missing) const {
    Group::sync();
    for (std::uint32_t j = Group::rank(); j < CodeTable::size; j += Group::size)
      table->g[j] = table->h[j] = 0;
    Group::sync();
    const CodesOf codes = codes_of(w.codes, column, n);
    constexpr std::uint32_t ahead = 4;
    for (std::uint32_t first = Group::rank(); first < n; first += ahead * Group::size) {
      Element e[ahead];
      std::uint32_t code[ahead];
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) {
        const std::uint32_t i = first + a * Group::size;
        e[a] = elements[i < n ? i : n - 1];
      }
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) code[a] = codes[row_of(e[a])];
#pragma unroll
      for (std::uint32_t a = 0; a < ahead; ++a) {
        if (first + a * Group::size >= n) continue;
        const PackedSum value = value_of(w.values, e[a], channel);
        const std::uint32_t slot = CodeTable::slot(code[a]);
        if (sum_g(value) != 0) atomicAdd(&table->g[slot], sum_g(value));
        atomicAdd(&table->h[slot], sum_h(value));
      }
    }
    Group::sync();
#pragma unroll
    for (int j = 0; j < n_bins; ++j) {
      const std::uint32_t bin = Group::rank() * n_bins + j;
      own[j] = bin < column.n_bins ? table->sum(bin) : 0;
    }
    missing = column.has_missing ? table->sum(column.n_bins) : 0;
  }
};

// The same from the histograms of a large node.
struct HistogramSource {
  const std::int64_t* histograms;  // of the node

  template <int n_bins>
  void read(const TreeWork& w, const TreeColumn& column, std::uint32_t j, std::uint32_t channel,
            std::int64_t (&own)[n_bins], std::int64_t& missing) const {
    const std::int64_t* sums =
        histograms + (static_cast<std::uint64_t>(j) * w.values.channels + channel) * most_codes;
    own[0] = threadIdx.x < column.n_bins ? sums[threadIdx.x] : 0;
    missing = column.has_missing ? sums[column.n_bins] : 0;
  }
};

template <bool logs>
inline double cut_score(const GainParams& p, std::int64_t left, std::int64_t right) {
  if constexpr (logs) {
    const auto log = [](double x) { return device::log_of(x); };
    return log_score(p, sum_g(left), sum_h(left), log) +
           log_score(p, sum_g(right), sum_h(right), log);
  } else {
    return split_score<true, double>(p, sum_g(left), sum_h(left), sum_g(right), sum_h(right));
  }
}

// Splits of one feature with a group's share of its bins.
template <int n_bins>
struct FeatureCuts {
  double right[n_bins], left[n_bins];  // scores with missing values on that side
  std::int64_t left_h[n_bins];         // without missing values
  std::int64_t missing_h, total_h;     // over all outputs
  std::uint32_t seen;                  // bins that occur, by bit
  std::uint32_t not_right, not_left;   // forbidden splits
  bool has_missing;
};

// Scores all splits of a feature; `number` is that of the feature among those of the node.
template <class Group, bool logs, int n_bins, class Source>
inline void score_feature(const TreeWork& w, const Source& source, const std::int64_t* totals,
                          const TreeColumn& column, std::uint32_t number,
                          FeatureCuts<n_bins>& cuts) {
  const GainParams& p = w.gain;
  const auto outputs = static_cast<std::uint32_t>(p.outputs);
  const auto channels = static_cast<std::uint32_t>(p.channels);
  // A bin without rows gives the split of the one before it.
  const bool skips = channels == 1 && w.cut_values == nullptr;
  cuts.missing_h = cuts.total_h = 0;
  cuts.seen = cuts.not_right = cuts.not_left = 0;
  cuts.has_missing = false;
#pragma unroll
  for (int j = 0; j < n_bins; ++j) {
    cuts.right[j] = cuts.left[j] = 0;
    cuts.left_h[j] = 0;
  }
  for (std::uint32_t c = 0; c < channels; ++c) {
    std::int64_t own[n_bins], missing, sum = 0;
    source.read(w, column, number, c, own, missing);
#pragma unroll
    for (int j = 0; j < n_bins; ++j) {
      if (own[j] != 0) cuts.seen |= 1u << j;
      sum += own[j];
    }
    cuts.has_missing |= missing != 0;
    std::int64_t prefix = Group::sum_before(sum);
    const std::int64_t total = totals[c];
    if (c < outputs) {
      cuts.missing_h += sum_h(missing);
      cuts.total_h += sum_h(total);
    }
#pragma unroll
    for (int j = 0; j < n_bins; ++j) {
      prefix += own[j];
      const std::int64_t with = prefix + missing;
      if (c == outputs) {  // counts of rows
        if (prefix < p.min_count || total - prefix < p.min_count) cuts.not_right |= 1u << j;
        if (with < p.min_count || total - with < p.min_count) cuts.not_left |= 1u << j;
        continue;
      }
      cuts.left_h[j] += sum_h(prefix);
      if (skips && own[j] == 0) {
        cuts.not_right |= 1u << j;
        cuts.not_left |= 1u << j;
        continue;
      }
      cuts.right[j] += cut_score<logs>(p, prefix, total - prefix);
      if (missing != 0 || (column.has_missing && channels > 1))
        cuts.left[j] += cut_score<logs>(p, with, total - with);
      if constexpr (logs) {
        if (p.criterion != Criterion::poisson) continue;  // a mean of 0 has infinite deviance
        if (sum_g(prefix) >= 0 || sum_g(total - prefix) >= 0) cuts.not_right |= 1u << j;
        if (sum_g(with) >= 0 || sum_g(total - with) >= 0) cuts.not_left |= 1u << j;
      }
    }
  }
}

// The bin of a random cut of a feature; n_bins: there is none.
template <class Group, int n_bins>
inline std::uint32_t random_bin(const TreeWork& w, std::uint64_t path, std::uint32_t feature,
                                const TreeColumn& column, const FeatureCuts<n_bins>& cuts) {
  const std::uint32_t first = Group::rank() * n_bins;
  const std::uint32_t own_low = cuts.seen == 0 ? column.n_bins : first + __ffs(cuts.seen) - 1;
  const std::uint32_t own_high = cuts.seen == 0 ? 0 : first + 31 - __clz(cuts.seen);
  const std::uint32_t low =
      Group::all(own_low, [](std::uint32_t a, std::uint32_t b) { return a < b ? a : b; });
  const std::uint32_t high =
      Group::all(own_high, [](std::uint32_t a, std::uint32_t b) { return a < b ? b : a; });
  if (low == column.n_bins || (low == high && !cuts.has_missing)) return column.n_bins;
  if (low == high) return column.n_bins - 1;  // all values on the left, missing rows on the right
  const double* values = w.cut_values + static_cast<std::uint64_t>(feature) * most_codes;
  const std::uint64_t key = cut_key(mix_bits(w.cut_key + path), feature);
  return draw_cut(key, [=](std::uint32_t bin) { return values[bin]; }, most_codes, low, high);
}

// Takes the best split of a feature where it beats the best one so far. Returns true if the feature
// varies in the node, or may.
template <class Group, bool logs, class Source>
inline bool search_feature(const TreeWork& w, const Source& source, const std::int64_t* totals,
                           std::uint64_t path, std::uint32_t number, std::uint32_t feature,
                           NodeBest& best) {
  constexpr int n_bins = most_codes / Group::size;
  const TreeColumn column = w.columns[feature];
  FeatureCuts<n_bins> cuts;
  score_feature<Group, logs>(w, source, totals, column, number, cuts);
  const bool random = w.cut_values != nullptr;
  const std::uint32_t cut = random ? random_bin<Group>(w, path, feature, column, cuts) : 0;
  const std::int64_t min_h = std::int64_t{w.gain.min_h} * w.gain.outputs;
  const std::uint32_t last = cuts.has_missing ? column.n_bins : column.n_bins - 1;
  Cut own{best.score, 0xffffffffu, 0};
#pragma unroll
  for (int j = 0; j < n_bins; ++j) {
    const std::uint32_t bin = Group::rank() * n_bins + j;
    if (random && bin != cut) continue;
    const std::int64_t h = cuts.left_h[j], with = h + cuts.missing_h;
    if (bin < last && h >= min_h && cuts.total_h - h >= min_h && !(cuts.not_right >> j & 1))
      own = better_cut(own, {cuts.right[j], bin, 0});
    if (cuts.has_missing && bin + 1 < column.n_bins && with >= min_h &&
        cuts.total_h - with >= min_h && !(cuts.not_left >> j & 1))
      own = better_cut(own, {cuts.left[j], most_codes + bin, 0});
  }
  const Cut found = Group::all(own, better_cut);
  const auto add = [](std::int64_t a, std::int64_t b) { return a + b; };
  if (!(found.score > best.score)) {
    const std::int64_t n_seen = Group::all(std::int64_t{__popc(cuts.seen)}, add);
    return n_seen + (cuts.has_missing ? 1 : 0) > 1;
  }
  best.score = found.score;
  best.feature = static_cast<std::int32_t>(feature);
  best.missing_left = found.place >= most_codes;
  best.missing_seen = cuts.has_missing;
  best.bin = found.place % most_codes;
  std::int64_t left_h = 0;
  std::uint32_t next = column.n_bins;
#pragma unroll
  for (int j = 0; j < n_bins; ++j) {
    const std::uint32_t bin = Group::rank() * n_bins + j;
    if (bin == best.bin) left_h = cuts.left_h[j];
    if (bin > best.bin && bin < next && cuts.seen >> j & 1) next = bin;
  }
  best.left_h = Group::all(left_h, add) + (best.missing_left ? cuts.missing_h : 0);
  best.next = Group::all(next, [](std::uint32_t a, std::uint32_t b) { return a < b ? a : b; });
  return true;
}

// All drawn features may be constant in the node. Then further features are drawn up to the first
// that is not, as in grow/split/random_cuts.cpp.
template <class Group, bool logs>
inline void search_further(const TreeWork& w, const RowSource<Group>& rows,
                           const std::int64_t* totals, std::uint64_t path,
                           const std::uint16_t* drawn, NodeBest& best) {
  struct Place {
    std::uint64_t hash;
    std::uint64_t feature;
  };
  constexpr std::uint64_t none = ~std::uint64_t{0};
  const std::uint64_t key = counter_hash(w.seed, Purpose::node_columns, w.number, path);
  const auto hash_of = [=](std::uint32_t f) { return mix_bits(mix_bits(key + f)); };
  std::uint64_t last = 0;
  for (std::uint32_t j = Group::rank(); j < w.n_drawn; j += Group::size) {
    const std::uint64_t hash = hash_of(drawn[j]);
    last = hash > last ? hash : last;
  }
  last = Group::all(last, [](std::uint64_t a, std::uint64_t b) { return a < b ? b : a; });
  for (;;) {
    Place own{none, none};
    for (std::uint32_t f = Group::rank(); f < w.n_features; f += Group::size) {
      const std::uint64_t hash = hash_of(f);
      if (hash > last && hash <= own.hash) own = {hash, f};
    }
    const Place next =
        Group::all(own, [](const Place& a, const Place& b) { return b.hash < a.hash ? b : a; });
    if (next.feature == none) return;
    if (search_feature<Group, logs>(w, rows, totals, path, 0,
                                    static_cast<std::uint32_t>(next.feature), best))
      return;
    last = next.hash;
  }
}

// The best split of a node from its rows; its feature is -1 where there is none.
template <class Group, bool logs>
inline NodeBest search_rows(const TreeWork& w, const RowSource<Group>& rows,
                            const std::int64_t* totals, std::uint64_t path, double floor,
                            const std::uint16_t* drawn) {
  NodeBest best{floor, 0, 0, 0, -1, 0, 0};
  bool varies = false;
  for (std::uint32_t j = 0; j < w.n_drawn; ++j)
    varies |= search_feature<Group, logs>(w, rows, totals, path, j, drawn == nullptr ? j : drawn[j],
                                          best);
  if (!varies && drawn != nullptr) search_further<Group, logs>(w, rows, totals, path, drawn, best);
  return best;
}
