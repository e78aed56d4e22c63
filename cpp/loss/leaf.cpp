// Counting sort of the residuals by leaf, then a selection in each leaf. Linear in rows; parallel
// over rows, then over leaves.
#include "loss/leaf.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "loss/apply.h"
#include "loss/quantile.h"

namespace arboost {
namespace {

// The rows' items: doubles, or with fixed-point weights, scaled so that their sum is below 2^62.
template <class Item>
class Items {
 public:
  Items(const LossRows& rows, std::size_t output, bool absolute, Team& team)
      : rows_(rows), output_(output), absolute_(absolute) {
    if constexpr (std::is_same_v<Item, WeightedValue>) {
      scale_ = weight_scale(rows, team);
    }
  }

  Item at(std::size_t row) const {
    const double score =
        rows_.scores == nullptr ? 0.0 : rows_.scores[row * rows_.outputs + output_];
    const double residual = rows_.y[row] - score + 0.0;  // one zero, not two
    const double value = absolute_ ? std::fabs(residual) : residual;
    if constexpr (std::is_same_v<Item, double>)
      return value;
    else
      return {value, weight(row)};
  }
  bool counts(std::size_t row) const {
    if constexpr (std::is_same_v<Item, double>) return true;
    return weight(row) > 0;
  }

 private:
  std::int64_t weight(std::size_t row) const { return std::llrint(rows_.weight[row] * scale_); }

  const LossRows& rows_;
  std::size_t output_;
  bool absolute_;
  double scale_ = 1;
};

void check_residual(double value) {
  if (!std::isfinite(value)) require_finite(value, "residual");
}

// Huber's leaf (Friedman 2001, algorithm 4). The sum is one of integers, so that it does not depend
// on the order of the items: terms are at most delta, and less than 2^62 together.
template <class Item>
double mean_of_clipped(const Item* items, std::size_t n, double centre, double delta) {
  if (delta <= 0) return 0;
  const std::int64_t weight = weight_between(items, items + n);
  int weight_bits, delta_bits;
  std::frexp(static_cast<double>(weight), &weight_bits);
  std::frexp(delta, &delta_bits);
  const double scale = std::ldexp(1.0, std::min(62 - delta_bits - weight_bits, 1000));
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double clipped = std::clamp(value_of(items[i]) - centre, -delta, delta);
    sum += std::llrint(clipped * scale * static_cast<double>(weight_of(items[i])));
  }
  return static_cast<double>(sum) / static_cast<double>(weight) / scale;
}

// Items by node: those of node v lie at [first[v], first[v + 1]).
template <class Item>
struct Grouped {
  std::vector<std::size_t> first;
  Item* items;
};

// A counting sort: each block of rows counts its leaves; prefix sums over nodes and blocks give the
// positions to write to.
template <class Item>
Grouped<Item> group_by_leaf(const Items<Item>& source, std::size_t n_rows,
                            const std::uint32_t* leaf, std::size_t n_nodes,
                            Buffer<std::uint8_t>& space, Team& team) {
  const std::size_t n_blocks = static_cast<std::size_t>(team.size());
  const std::size_t block = (n_rows + n_blocks - 1) / n_blocks;
  std::vector<std::size_t> next(n_blocks * n_nodes, 0);
  team.for_chunks(0, n_rows, block, [&](std::size_t begin, std::size_t end, int) {
    std::size_t* counts = next.data() + begin / block * n_nodes;
    for (std::size_t i = begin; i < end; ++i) {
      if (leaf[i] == no_leaf || !source.counts(i)) continue;
      if (leaf[i] >= n_nodes)
        throw std::invalid_argument("a row is in leaf " + std::to_string(leaf[i]) + " of " +
                                    std::to_string(n_nodes) + " nodes");
      ++counts[leaf[i]];
    }
  });
  Grouped<Item> grouped{std::vector<std::size_t>(n_nodes + 1, 0), nullptr};
  std::size_t total = 0;
  for (std::size_t node = 0; node < n_nodes; ++node) {
    grouped.first[node] = total;
    for (std::size_t b = 0; b < n_blocks; ++b) {
      const std::size_t count = next[b * n_nodes + node];
      next[b * n_nodes + node] = total;
      total += count;
    }
  }
  grouped.first[n_nodes] = total;
  make_room(space, total * sizeof(Item));
  grouped.items = reinterpret_cast<Item*>(space.data());
  team.for_chunks(0, n_rows, block, [&](std::size_t begin, std::size_t end, int) {
    std::size_t* position = next.data() + begin / block * n_nodes;
    for (std::size_t i = begin; i < end; ++i) {
      if (leaf[i] == no_leaf || !source.counts(i)) continue;
      const Item item = source.at(i);
      check_residual(value_of(item));
      grouped.items[position[leaf[i]]++] = item;
    }
  });
  return grouped;
}

template <class Item>
std::vector<double> refit(const LossRows& rows, std::size_t output, const std::uint32_t* leaf,
                          std::size_t n_nodes, const LeafRule& rule, Buffer<std::uint8_t>& space,
                          Team& team) {
  const Items<Item> source(rows, output, false, team);
  const Grouped<Item> grouped = group_by_leaf(source, rows.n_rows, leaf, n_nodes, space, team);
  std::vector<double> values(n_nodes, 0.0);
  team.for_chunks(0, n_nodes, 1, [&](std::size_t node, std::size_t, int member) {
    Item* items = grouped.items + grouped.first[node];
    const std::size_t n = grouped.first[node + 1] - grouped.first[node];
    if (n == 0) return;
    values[node] = quantile_of(items, n, rule.alpha, team, member);
    if (rule.delta) values[node] += mean_of_clipped(items, n, values[node], *rule.delta);
  });
  return values;
}

template <class Item>
double quantile_of_all(const LossRows& rows, double alpha, bool absolute, Team& team) {
  const Items<Item> source(rows, 0, absolute, team);
  Buffer<Item> items(rows.n_rows);
  constexpr std::size_t block = 16384;
  std::vector<std::size_t> counts((rows.n_rows + block - 1) / block);
  team.for_chunks(0, rows.n_rows, block, [&](std::size_t begin, std::size_t end, int) {
    std::size_t next = begin;
    for (std::size_t i = begin; i < end; ++i) {
      const Item item = source.at(i);
      check_residual(value_of(item));
      items[next] = item;
      next += source.counts(i) ? 1 : 0;
    }
    counts[begin / block] = next - begin;
  });
  std::size_t n = 0;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const Item* block_items = items.data() + b * block;
    if (n < b * block) std::copy(block_items, block_items + counts[b], items.data() + n);
    n += counts[b];
  }
  return n == 0 ? 0.0 : quantile_of(items.data(), n, alpha, team, 0);
}

}  // namespace

double weight_scale(double largest, std::size_t n_rows) {
  int exponent;
  if (!std::isfinite(largest)) throw std::invalid_argument("a weight is infinite");
  std::frexp(largest, &exponent);
  const int bits_left = 62 - exponent - std::bit_width(n_rows);
  return std::ldexp(1.0, std::min(bits_left, 1000));
}

double weight_scale(const LossRows& rows, Team& team) {
  return weight_scale(max_weight(rows.weight, rows.n_rows, team), rows.n_rows);
}

std::vector<double> refit_leaves(const LossRows& rows, std::size_t output,
                                 const std::uint32_t* leaf, std::size_t n_nodes,
                                 const LeafRule& rule, Buffer<std::uint8_t>& space, Team& team) {
  return rows.weight == nullptr
             ? refit<double>(rows, output, leaf, n_nodes, rule, space, team)
             : refit<WeightedValue>(rows, output, leaf, n_nodes, rule, space, team);
}

double residual_quantile(const LossRows& rows, double alpha, bool absolute, Team& team) {
  return rows.weight == nullptr ? quantile_of_all<double>(rows, alpha, absolute, team)
                                : quantile_of_all<WeightedValue>(rows, alpha, absolute, team);
}

}  // namespace arboost
