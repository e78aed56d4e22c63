// Grid -> regions of the nodes: linear in nodes and in points of the splits on the grid;
// single-threaded. Rows -> walks of both sides of splits on the grid -> sums by region of the grid.
// Parallel over blocks of rows.
#include "explain/partial_dependence.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument

#include "base/require.h"

namespace arboost {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::size_t word_bits = 64;

class Maker {
 public:
  Maker(GridForest& made, std::size_t n_columns, std::size_t n_outputs)
      : made_(made),
        forest_(made.forest),
        n_columns_(n_columns),
        n_outputs_(n_outputs),
        used_(n_columns) {
    for (const std::size_t axis : {0, 1}) words_[axis] = (made.n_points(axis) + 63) / word_bits;
    stride_ = words_[0] + words_[1];
    left_.resize(stride_);
    // The whole grid.
    masks_.assign(stride_, 0);
    for (const std::size_t axis : {0, 1})
      for (std::size_t i = 0; i < made.n_points(axis); ++i) set_bit(mask(0, axis), i);
    n_regions_ = 1;
  }

  void make() {
    const std::size_t n_trees = forest_.output.size(), n_nodes = forest_.left.size();
    require(forest_.tree_start.size() == n_trees + 1, "trees out of range");
    made_.nodes.resize(n_nodes);
    made_.region.assign(n_nodes, GridForest::nowhere);
    for (std::size_t t = 0; t < n_trees; ++t) {
      const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
      const auto last = static_cast<std::size_t>(forest_.tree_start[t + 1]);
      require(first < last && last <= n_nodes, "a tree without nodes");
      require(static_cast<std::size_t>(forest_.output[t]) < n_outputs_,
              "a tree for an unknown output");
      made_.region[first] = 0;
      depth_.assign(last - first, 0);
      for (std::size_t i = 0; i < last - first; ++i) make_node(first, i, last - first);
      made_.depth.push_back(*std::max_element(depth_.begin(), depth_.end()));
    }
    made_.columns = std::move(used_.columns);
    // The index of the leaves' column is known only after all used columns.
    for (Node& node : made_.nodes)
      if ((node.column & column_bits) == UsedColumns::unused)
        node.column ^= UsedColumns::unused ^ static_cast<std::uint32_t>(made_.columns.size());
    for (std::size_t r = 0; r < n_regions_; ++r)
      made_.regions.push_back({{part_of(r, 0), part_of(r, 1)}});
  }

 private:
  static void set_bit(std::uint64_t* words, std::size_t i) {
    words[i / word_bits] |= std::uint64_t{1} << (i % word_bits);
  }
  std::uint64_t* mask(std::size_t region, std::size_t axis) {
    return masks_.data() + region * stride_ + (axis == 0 ? 0 : words_[0]);
  }

  void make_node(std::size_t first, std::size_t i, std::size_t size) {
    const std::size_t node = first + i;
    Node& made = made_.nodes[node];
    made = {infinity, static_cast<std::uint32_t>(i), UsedColumns::unused};
    if (forest_.left[node] == 0) {
      if (forest_.width == 1) made.threshold = forest_.value[node];
      if (made_.region[node] == 0) made.column |= GridForest::is_plain;
      return;
    }
    const auto left = static_cast<std::size_t>(forest_.left[node]);
    require(left > i && left < size - 1, "a child outside its tree");
    const auto feature = static_cast<std::size_t>(forest_.feature[node]);
    require(feature < n_columns_, "a split on an unknown column");
    const bool has_set = forest_.level_set[node] >= 0;
    if (has_set)
      require(static_cast<std::size_t>(forest_.level_set[node]) < forest_.level_sets.size() / 4,
              "an unknown set of levels");
    const std::int32_t region = made_.region[node];
    if (region == GridForest::nowhere) return;  // so are its children
    std::int32_t* children = made_.region.data() + first + left;
    depth_[left] = depth_[left + 1] = depth_[i] + 1;
    for (std::size_t axis = 0; axis < made_.grid.size(); ++axis)
      if (made_.grid[axis].feature == feature)
        return divide(node, axis, static_cast<std::uint32_t>(left), children);
    children[0] = children[1] = region;
    made.next = static_cast<std::uint32_t>(left);
    made.column = used_.number(feature, has_set);
    if (has_set) {
      made_.sets.push_back(forest_.left_codes(node));
      made.threshold = std::bit_cast<double>(std::uint64_t{made_.sets.size() - 1});
      made.column |= by_set;
    } else {
      made.threshold = forest_.threshold[node];
      if (!forest_.default_left[node]) made.column |= missing_right;
    }
  }

  // A split on an axis of the grid.
  void divide(std::size_t node, std::size_t axis, std::uint32_t left, std::int32_t* children) {
    const auto region = static_cast<std::size_t>(made_.region[node]);
    const std::span<const double> values = made_.grid[axis].values;
    std::fill_n(left_.begin(), words_[axis], 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (goes_left(node, values[i])) set_bit(left_.data(), i);
    std::uint64_t some_left = 0, some_right = 0;
    for (std::size_t w = 0; w < words_[axis]; ++w) {
      some_left |= mask(region, axis)[w] & left_[w];
      some_right |= mask(region, axis)[w] & ~left_[w];
    }
    Node& made = made_.nodes[node];
    if (some_left == 0 || some_right == 0) {
      const std::uint32_t side = some_left == 0;
      made.next = left + side;
      children[side] = made_.region[node];
      return;
    }
    for (const std::size_t side : {0, 1}) {
      masks_.resize(masks_.size() + stride_);
      std::copy_n(mask(region, 0), stride_, mask(n_regions_, 0));
      for (std::size_t w = 0; w < words_[axis]; ++w)
        mask(n_regions_, axis)[w] &= side == 0 ? left_[w] : ~left_[w];
      children[side] = static_cast<std::int32_t>(n_regions_++);
    }
  }

  bool goes_left(std::size_t node, double value) const {
    if (forest_.level_set[node] < 0)
      return std::isnan(value) ? forest_.default_left[node] != 0 : value <= forest_.threshold[node];
    return holds(forest_.left_codes(node), static_cast<std::uint32_t>(level_or_missing(value)));
  }

  Part part_of(std::size_t region, std::size_t axis) {
    const std::size_t n = made_.n_points(axis);
    const std::uint64_t* words = mask(region, axis);
    Part part{static_cast<std::uint32_t>(made_.runs.size()), 0, false};
    for (std::size_t i = 0; i < n;) {
      const bool inside = (words[i / word_bits] >> (i % word_bits) & 1) != 0;
      const std::size_t begin = i++;
      if (!inside) continue;
      while (i < n && (words[i / word_bits] >> (i % word_bits) & 1) != 0) ++i;
      made_.runs.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(i)});
    }
    part.end = static_cast<std::uint32_t>(made_.runs.size());
    part.is_all =
        part.end == part.begin + 1 && made_.runs.back().begin == 0 && made_.runs.back().end == n;
    return part;
  }

  GridForest& made_;
  const Forest& forest_;
  std::size_t n_columns_, n_outputs_;
  UsedColumns used_;
  std::size_t words_[2], stride_;     // of a mask of one axis, and of both
  std::vector<std::uint64_t> masks_;  // of each region: a bit for each point of either axis
  std::size_t n_regions_ = 0;
  std::vector<std::uint64_t> left_;  // points of an axis that go left
  std::vector<int> depth_;           // of the tree's nodes
};

constexpr std::size_t lanes = 8;  // rows that walk together: their loads overlap
// Of a block: values fit the L1 cache, sums the L2 cache.
constexpr std::size_t values_bytes = 32 * 1024, sums_bytes = 256 * 1024;

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
    read_columns(table_, grid_forest_.columns, begin, end, values_.data(), 1, stride_);
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
    const Node* nodes = grid_forest_.nodes.data() + first;
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
      const Node& node = nodes[at[lane]];
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
  void walk(const Node* nodes, int depth, const double* const* values, std::uint32_t* at) const {
    for (int level = 0; level < depth; ++level) {
      std::uint32_t moved = 0;
      for (std::size_t lane = 0; lane < n; ++lane) {
        const std::uint32_t next =
            step<!is_simple, !is_simple>(nodes[at[lane]], grid_forest_.sets.data(), values[lane]);
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

GridForest::GridForest(const Forest& trees, Grid axes, std::size_t n_columns, std::size_t n_outputs)
    : forest(trees), grid(axes) {
  require(grid.size() == 1 || grid.size() == 2, "the grid must have one or two features");
  for (const Axis& axis : grid) {
    require(axis.feature < n_columns, "a feature of the grid is unknown");
    require(!axis.values.empty() && axis.values.size() < column_bits,
            "an axis of the grid has no points, or too many");
  }
  require(grid.size() == 1 || grid[0].feature != grid[1].feature,
          "the two features of the grid are the same");
  require(forest.width == 1 || forest.width == n_outputs, "leaves that do not fit the outputs");
  Maker(*this, n_columns, n_outputs).make();
}

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
