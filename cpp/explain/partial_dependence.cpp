#include "explain/partial_dependence.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <vector>

namespace arboost {
namespace {

constexpr std::size_t lanes = 8;  // rows that walk together: their loads overlap
constexpr std::size_t sums_bytes = 256 * 1024;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Sums over trees for one row and output. What depends on one feature of the grid, or on none, is
// kept apart, so that only leaves below splits on both touch every point:
//
//   [0]  everywhere | points of the first axis | points of the second | all points
class Sums {
 public:
  explicit Sums(const GridForest& grid_forest)
      : runs_(grid_forest.runs.data()),
        n_first_(grid_forest.n_points(0)),
        n_second_(grid_forest.grid.size() > 1 ? grid_forest.n_points(1) : 0) {}

  std::size_t size() const { return 1 + n_first_ + n_second_ + n_first_ * n_second_; }

  void add(const Region& region, double value, double* sums) const {
    const Part &first = region.part[0], &second = region.part[1];
    if (first.is_all && second.is_all) {
      sums[0] += value;
    } else if (second.is_all) {
      add_runs(first, value, sums + 1);
    } else if (first.is_all) {
      add_runs(second, value, sums + 1 + n_first_);
    } else {
      double* points = sums + 1 + n_first_ + n_second_;
      for (std::uint32_t r = first.begin; r < first.end; ++r)
        for (std::size_t i = runs_[r].begin; i < runs_[r].end; ++i)
          add_runs(second, value, points + i * n_second_);
    }
  }

  // Writes the sum of each point to out[point * stride].
  void total(const double* sums, double* out, std::size_t stride) const {
    const double *first = sums + 1, *second = first + n_first_, *both = second + n_second_;
    for (std::size_t i = 0; i < n_first_; ++i) {
      const double base = sums[0] + first[i];
      if (n_second_ == 0) out[i * stride] = base;
      for (std::size_t j = 0; j < n_second_; ++j)
        out[(i * n_second_ + j) * stride] = base + second[j] + both[i * n_second_ + j];
    }
  }

 private:
  void add_runs(const Part& part, double value, double* points) const {
    for (std::uint32_t r = part.begin; r < part.end; ++r)
      for (std::size_t i = runs_[r].begin; i < runs_[r].end; ++i) points[i] += value;
  }

  const Run* runs_;
  std::size_t n_first_, n_second_;
};

// Adds the leaf's values to the sums of all outputs it speaks of, which are `size` apart.
inline void add_leaf(const GridForest& grid_forest, const Sums& sums, std::size_t tree,
                     std::size_t leaf, double factor, double* out) {
  const Forest& forest = grid_forest.forest;
  const auto number = static_cast<std::size_t>(grid_forest.region[leaf]);
  const Region& region = grid_forest.regions[number];
  const double* value = forest.value.data() + leaf * forest.width;
  if (forest.width == 1) {
    const auto output = static_cast<std::size_t>(forest.output[tree]);
    sums.add(region, factor * value[0], out + output * sums.size());
    return;
  }
  for (std::size_t k = 0; k < forest.width; ++k)
    sums.add(region, factor * value[k], out + k * sums.size());
}

// A few rows: their values, where they are in a tree, and their sums.
class Block {
 public:
  Block(const Columns& table, const GridForest& grid_forest, std::size_t n_outputs,
        std::size_t rows)
      : table_(table),
        grid_forest_(grid_forest),
        sums_(grid_forest),
        n_outputs_(n_outputs),
        stride_(grid_forest.columns.size() + 1),
        values_(rows * stride_, -infinity),
        totals_(rows * n_outputs * sums_.size()) {}

  static std::size_t capacity(const GridForest& grid_forest, std::size_t n_outputs) {
    const std::size_t row_bytes = n_outputs * Sums(grid_forest).size() * sizeof(double);
    return std::clamp(sums_bytes / row_bytes, lanes, block_rows);
  }

  void run(std::size_t begin, std::size_t end, double* out) {
    read(begin, end);
    std::fill(totals_.begin(), totals_.end(), 0.0);
    const std::size_t n = end - begin;
    for (std::size_t t = 0; t < grid_forest_.forest.output.size(); ++t)
      grid_forest_.has_sets() ? run_tree<true>(t, n) : run_tree<false>(t, n);
    const std::size_t n_points = grid_forest_.n_points(), size = sums_.size();
    for (std::size_t row = 0; row < n; ++row)
      for (std::size_t k = 0; k < n_outputs_; ++k)
        sums_.total(totals_.data() + (row * n_outputs_ + k) * size,
                    out + row * n_points * n_outputs_ + k, n_outputs_);
  }

 private:
  struct Walker {
    std::uint32_t row, node;
  };

  void read(std::size_t begin, std::size_t end) {
    double* values = values_.data();
    for (const GridForest::Column& column : grid_forest_.columns) {
      read_block(table_.columns[column.feature], begin, end, values, stride_);
      if (column.of_codes) {
        for (std::size_t i = 0; i < end - begin; ++i) {
          double& value = values[i * stride_];
          const bool known =
              value >= 0 && value < GridForest::missing_code && value == std::floor(value);
          if (!known) value = GridForest::missing_code;
        }
      }
      ++values;
    }
  }

  // Rows that arrive at a split on the grid go on as two.
  template <bool with_sets>
  void run_tree(std::size_t t, std::size_t n) {
    const auto first = static_cast<std::size_t>(grid_forest_.forest.tree_start[t]);
    const std::int32_t* left = grid_forest_.forest.left.data() + first;
    const std::int32_t* region = grid_forest_.region.data() + first;
    const std::size_t row_sums = n_outputs_ * sums_.size();
    walkers_.clear();
    for (std::size_t row = 0; row < n; ++row)
      walkers_.push_back({static_cast<std::uint32_t>(row), 0});
    for (std::size_t at = 0, count = 0; at < walkers_.size(); at += count) {
      count = std::min(lanes, walkers_.size() - at);
      walk<with_sets>(grid_forest_.nodes.data() + first, walkers_.data() + at, count);
      for (std::size_t i = at; i < at + count; ++i) {
        const Walker walker = walkers_[i];
        const auto child = static_cast<std::uint32_t>(left[walker.node]);
        if (child == 0) {
          add_leaf(grid_forest_, sums_, t, first + walker.node, 1.0,
                   totals_.data() + walker.row * row_sums);
          continue;
        }
        for (const std::uint32_t side : {child, child + 1})
          if (region[side] != GridForest::nowhere) walkers_.push_back({walker.row, side});
      }
    }
  }

  // Lets some rows go on until none moves.
  template <bool with_sets>
  void walk(const GridForest::Node* nodes, Walker* walkers, std::size_t count) const {
    std::uint32_t at[lanes];
    const double* row[lanes];
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const Walker& walker = walkers[std::min(lane, count - 1)];
      at[lane] = walker.node;
      row[lane] = values_.data() + walker.row * stride_;
    }
    for (std::uint32_t moved = 1; moved != 0;) {
      moved = 0;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const GridForest::Node node = nodes[at[lane]];
        const double x = row[lane][node.column & GridForest::column_bits];
        std::uint32_t right = x > node.threshold;
        right |= (x != x) & (node.column >> 31);
        if constexpr (with_sets)
          if (node.column & GridForest::by_set)
            right = !holds(grid_forest_.sets[std::bit_cast<std::uint64_t>(node.threshold)],
                           static_cast<std::uint32_t>(x));
        const std::uint32_t next = node.next + right;
        moved |= next ^ at[lane];
        at[lane] = next;
      }
    }
    for (std::size_t lane = 0; lane < count; ++lane) walkers[lane].node = at[lane];
  }

  const Columns& table_;
  const GridForest& grid_forest_;
  Sums sums_;
  std::size_t n_outputs_, stride_;
  std::vector<double> values_;  // by row; the last column is -infinity
  std::vector<double> totals_;  // by row and output
  std::vector<Walker> walkers_;
};

}  // namespace

void partial_of_rows(const Columns& table, std::size_t begin, std::size_t end,
                     const GridForest& grid_forest, std::size_t n_outputs, Team& team,
                     double* out) {
  if (begin > end || end > table.n_rows) throw std::invalid_argument("rows outside the table");
  const std::size_t rows = Block::capacity(grid_forest, n_outputs);
  const std::size_t row_size = grid_forest.n_points() * n_outputs;
  team.for_chunks(0, end - begin, rows, [&](std::size_t from, std::size_t to, int) {
    Block block(table, grid_forest, n_outputs, to - from);
    block.run(begin + from, begin + to, out + from * row_size);
  });
}

void partial_of_trees(const GridForest& grid_forest, std::span<const double> cover,
                      std::size_t n_outputs, double* out) {
  const Forest& forest = grid_forest.forest;
  const Sums sums(grid_forest);
  std::vector<double> totals(n_outputs * sums.size()), weight(forest.left.size());
  for (std::size_t t = 0; t < forest.output.size(); ++t) {
    const auto first = static_cast<std::size_t>(forest.tree_start[t]);
    const auto last = static_cast<std::size_t>(forest.tree_start[t + 1]);
    weight[first] = 1.0;
    for (std::size_t node = first; node < last; ++node) {  // parents come before their children
      if (grid_forest.region[node] == GridForest::nowhere) continue;
      if (forest.left[node] == 0) {
        add_leaf(grid_forest, sums, t, node, weight[node], totals.data());
        continue;
      }
      const std::size_t left = first + static_cast<std::size_t>(forest.left[node]);
      weight[left] = weight[left + 1] = weight[node];
      const auto feature = static_cast<std::size_t>(forest.feature[node]);
      if (std::any_of(grid_forest.grid.begin(), grid_forest.grid.end(),
                      [&](const Axis& axis) { return axis.feature == feature; }))
        continue;
      const double both = cover[left] + cover[left + 1];
      const double share = both > 0 ? cover[left] / both : 0.5;
      weight[left] *= share;
      weight[left + 1] *= 1 - share;
    }
  }
  for (std::size_t k = 0; k < n_outputs; ++k)
    sums.total(totals.data() + k * sums.size(), out + k, n_outputs);
}

}  // namespace arboost
