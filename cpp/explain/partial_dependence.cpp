// Rows -> walks of both sides of splits on the grid -> sums by region of the grid. Parallel over
// blocks of rows.
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
// Of a block: values fit the L1 cache, sums the L2 cache.
constexpr std::size_t values_bytes = 32 * 1024, sums_bytes = 256 * 1024;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Sums over trees for one row and output, except leaves of the whole grid. Contributions that
// depend on one feature of the grid are kept apart, so that only leaves below splits on both
// features update every point:
//
//   points of the first axis | points of the second | all points
class Sums {
 public:
  explicit Sums(const GridForest& grid_forest)
      : runs_(grid_forest.runs.data()),
        n_first_(grid_forest.n_points(0)),
        n_second_(grid_forest.grid.size() > 1 ? grid_forest.n_points(1) : 0) {}

  std::size_t size() const { return n_first_ + n_second_ + n_first_ * n_second_; }

  void add(const Region& region, double value, double* sums) const {
    const Part &first = region.part[0], &second = region.part[1];
    if (second.is_all) {
      add_runs(first, value, sums);
    } else if (first.is_all) {
      add_runs(second, value, sums + n_first_);
    } else {
      double* points = sums + n_first_ + n_second_;
      for (std::uint32_t r = first.begin; r < first.end; ++r)
        for (std::size_t i = runs_[r].begin; i < runs_[r].end; ++i)
          add_runs(second, value, points + i * n_second_);
    }
  }

  // Writes the sum of each point, with the constant part `everywhere`, to out[point * stride].
  void total(double everywhere, const double* sums, double* out, std::size_t stride) const {
    const double *second = sums + n_first_, *both = second + n_second_;
    for (std::size_t i = 0; i < n_first_; ++i) {
      const double base = everywhere + sums[i];
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

// Adds the leaf's values, times a factor, to the sums of its outputs.
inline void add_leaf(const GridForest& grid_forest, const Sums& sums, std::size_t tree,
                     std::size_t leaf, double factor, double* everywhere, double* out) {
  const Forest& forest = grid_forest.forest;
  const auto number = static_cast<std::size_t>(grid_forest.region[leaf]);
  const std::size_t width = forest.width;
  const std::size_t first = width == 1 ? static_cast<std::size_t>(forest.output[tree]) : 0;
  const double* value = forest.value.data() + leaf * width;
  for (std::size_t k = 0; k < width; ++k) {
    if (number == 0)
      everywhere[first + k] += factor * value[k];
    else
      sums.add(grid_forest.regions[number], factor * value[k], out + (first + k) * sums.size());
  }
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
        everywhere_(rows * n_outputs),
        totals_(rows * n_outputs * sums_.size()) {}

  static std::size_t capacity(const GridForest& grid_forest, std::size_t n_outputs) {
    const std::size_t row_sums = n_outputs * Sums(grid_forest).size() * sizeof(double);
    const std::size_t row_values = (grid_forest.columns.size() + 1) * sizeof(double);
    const std::size_t rows = std::min(sums_bytes / row_sums, values_bytes / row_values);
    return std::clamp(rows, lanes, block_rows) / lanes * lanes;
  }

  void run(std::size_t begin, std::size_t end, double* out) {
    const bool is_simple = !read(begin, end) && !grid_forest_.has_sets();
    const std::size_t n = end - begin;
    for (std::size_t t = 0; t < grid_forest_.forest.output.size(); ++t) run_tree(t, n, is_simple);
    const std::size_t n_points = grid_forest_.n_points(), size = sums_.size();
    for (std::size_t i = 0; i < n * n_outputs_; ++i) {  // by row and output
      const std::size_t row = i / n_outputs_, k = i % n_outputs_;
      sums_.total(everywhere_[i], totals_.data() + i * size, out + row * n_points * n_outputs_ + k,
                  n_outputs_);
    }
  }

 private:
  struct Walker {
    std::uint32_t row, node;
  };

  // Returns true if a value is missing.
  bool read(std::size_t begin, std::size_t end) {
    double* values = values_.data();
    for (const GridForest::Column& column : grid_forest_.columns) {
      read_block(table_.columns[column.feature], begin, end, values, stride_);
      if (column.of_codes) {
        for (std::size_t i = 0; i < end - begin; ++i)
          values[i * stride_] = level_or_missing(values[i * stride_]);
      }
      ++values;
    }
    const std::size_t n = (end - begin) * stride_;
    bool missing = false;
    for (std::size_t i = 0; i < n; ++i) missing |= std::isnan(values_[i]);
    return missing;
  }

  void run_tree(std::size_t t, std::size_t n, bool is_simple) {
    const auto first = static_cast<std::size_t>(grid_forest_.forest.tree_start[t]);
    const std::size_t full = n / lanes * lanes;
    for (std::size_t row = 0; row < full; row += lanes)
      is_simple ? start<lanes, true>(t, first, row) : start<lanes, false>(t, first, row);
    for (std::size_t row = full; row < n; ++row) start<1, false>(t, first, row);
    run_divided(t, first, is_simple);
  }

  // Some rows that follow each other walk from the root.
  template <std::size_t n, bool is_simple>
  void start(std::size_t t, std::size_t first, std::size_t row) {
    const GridForest::Node* nodes = grid_forest_.nodes.data() + first;
    const double* values[n];
    std::uint32_t at[n];
    for (std::size_t lane = 0; lane < n; ++lane) {
      at[lane] = 0;
      values[lane] = values_.data() + (row + lane) * stride_;
    }
    walk<n, is_simple>(nodes, grid_forest_.depth[t], values, at);
    double* plain = everywhere_.data() + row * n_outputs_ + grid_forest_.forest.output[t];
    const bool one_value = grid_forest_.forest.width == 1;
    for (std::size_t lane = 0; lane < n; ++lane) {
      const GridForest::Node& node = nodes[at[lane]];
      if (one_value && (node.column & GridForest::is_plain) != 0)
        plain[lane * n_outputs_] += node.threshold;
      else
        arrive(t, first, {static_cast<std::uint32_t>(row + lane), at[lane]});
    }
  }

  // Rows that arrive at a split on the grid go on as two.
  void arrive(std::size_t t, std::size_t first, Walker walker) {
    const auto left = static_cast<std::uint32_t>(grid_forest_.forest.left[first + walker.node]);
    if (left == 0)
      return add_leaf(grid_forest_, sums_, t, first + walker.node, 1.0,
                      everywhere_.data() + walker.row * n_outputs_,
                      totals_.data() + walker.row * n_outputs_ * sums_.size());
    walkers_.push_back({walker.row, left});
    walkers_.push_back({walker.row, left + 1});
  }

  void run_divided(std::size_t t, std::size_t first, bool is_simple) {
    const auto walk_some = is_simple ? &Block::walk<lanes, true> : &Block::walk<lanes, false>;
    std::uint32_t at[lanes];
    const double* values[lanes];
    for (std::size_t begin = 0, count = 0; begin < walkers_.size(); begin += count) {
      count = std::min(lanes, walkers_.size() - begin);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const Walker& walker = walkers_[begin + std::min(lane, count - 1)];
        at[lane] = walker.node;
        values[lane] = values_.data() + walker.row * stride_;
      }
      (this->*walk_some)(grid_forest_.nodes.data() + first, grid_forest_.depth[t], values, at);
      for (std::size_t lane = 0; lane < count; ++lane)
        arrive(t, first, {walkers_[begin + lane].row, at[lane]});
    }
    walkers_.clear();
  }

  // Simple are rows without missing values and trees without sets.
  template <std::size_t n, bool is_simple>
  void walk(const GridForest::Node* nodes, int depth, const double* const* values,
            std::uint32_t* at) const {
    for (int level = 0; level < depth; ++level) {
      std::uint32_t moved = 0;
      for (std::size_t lane = 0; lane < n; ++lane) {
        const GridForest::Node node = nodes[at[lane]];
        const double x = values[lane][node.column & GridForest::column_bits];
        std::uint32_t right = x > node.threshold;
        if constexpr (!is_simple) {
          right |= (x != x) & (node.column >> 31);
          if (node.column & GridForest::by_set)
            right = !holds(grid_forest_.sets[std::bit_cast<std::uint64_t>(node.threshold)],
                           static_cast<std::uint32_t>(x));
        }
        const std::uint32_t next = node.next + right;
        moved |= next ^ at[lane];
        at[lane] = next;
      }
      if (moved == 0) break;  // uneven trees: all have arrived before the deepest leaf
    }
  }

  const Columns& table_;
  const GridForest& grid_forest_;
  Sums sums_;
  std::size_t n_outputs_, stride_;
  std::vector<double> values_;      // by row; the last column is -infinity
  std::vector<double> everywhere_;  // by row and output: of leaves that the whole grid leads to
  std::vector<double> totals_;      // by row and output: `Sums`
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
  std::vector<double> everywhere(n_outputs), totals(n_outputs * sums.size());
  std::vector<double> weight(forest.left.size());
  for (std::size_t t = 0; t < forest.output.size(); ++t) {
    const auto first = static_cast<std::size_t>(forest.tree_start[t]);
    const auto last = static_cast<std::size_t>(forest.tree_start[t + 1]);
    weight[first] = 1.0;
    for (std::size_t node = first; node < last; ++node) {  // parents come before their children
      if (grid_forest.region[node] == GridForest::nowhere) continue;
      if (forest.left[node] == 0) {
        add_leaf(grid_forest, sums, t, node, weight[node], everywhere.data(), totals.data());
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
    sums.total(everywhere[k], totals.data() + k * sums.size(), out + k, n_outputs);
}

}  // namespace arboost
