// Trees -> packed nodes, with all checks: 5 to 10 ns a node; single-threaded. Table -> blocks of
// doubles that stay in the cache -> scores; each block passes all trees, several rows at a time: 1
// to 2 ns a step of a row. Parallel over blocks.
#include "predict/traverse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <utility>    // move

#include "base/require.h"

namespace arboost {
namespace {

class Packer {
 public:
  Packer(const Forest& forest, std::size_t n_columns, std::size_t n_outputs)
      : forest_(forest), n_outputs_(n_outputs), n_columns_(n_columns), used_(n_columns) {}

  Packed pack(TreeRange range) {
    const auto first = static_cast<std::size_t>(forest_.tree_start[range.begin]);
    const auto last = static_cast<std::size_t>(forest_.tree_start[range.end]);
    require(first <= last && last <= forest_.left.size(), "trees outside the nodes");
    packed_.nodes.resize(last - first);
    for (std::size_t t = range.begin; t < range.end; ++t) pack_tree(t, first);
    packed_.columns = std::move(used_.columns);
    // The index of the leaves' column is known only after all used columns.
    for (Node& node : packed_.nodes)
      if (node.column == UsedColumns::unused)
        node.column = static_cast<std::uint32_t>(packed_.columns.size());
    return std::move(packed_);
  }

 private:
  void pack_tree(std::size_t t, std::size_t origin) {
    const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
    const auto last = static_cast<std::size_t>(forest_.tree_start[t + 1]);
    require(origin <= first && first < last && last <= origin + packed_.nodes.size(),
            "a tree without nodes");
    const auto output = static_cast<std::uint32_t>(forest_.output[t]);
    require(output < n_outputs_, "a tree for an unknown output");
    const std::size_t size = last - first;
    depth_.assign(size, 0);
    int depth = 0;
    for (std::size_t i = 0; i < size; ++i) {
      depth = std::max(depth, depth_[i]);
      packed_.nodes[first - origin + i] = pack_node(first + i, i, size);
    }
    packed_.trees.push_back({first - origin, first, depth, output});
  }

  Node pack_node(std::size_t node, std::size_t i, std::size_t size) {
    if (forest_.left[node] == 0) {
      const double value = forest_.width == 1 ? forest_.value[node] : 0.0;
      return {value, static_cast<std::uint32_t>(i), UsedColumns::unused};
    }
    const auto left = static_cast<std::size_t>(forest_.left[node]);
    require(left > i && left < size - 1, "a child outside its tree");
    depth_[left] = depth_[left + 1] = depth_[i] + 1;
    const bool has_set = forest_.level_set[node] >= 0;
    const auto feature = static_cast<std::size_t>(forest_.feature[node]);
    require(feature < n_columns_, "a split on an unknown column");
    const std::uint32_t column = used_.number(feature, has_set);
    const auto next = static_cast<std::uint32_t>(left);
    if (has_set) return {std::bit_cast<double>(pack_set(node)), next, column | by_set};
    const std::uint32_t flag = forest_.default_left[node] ? 0 : missing_right;
    return {forest_.threshold[node], next, column | flag};
  }

  std::uint64_t pack_set(std::size_t node) {
    const auto number = static_cast<std::size_t>(forest_.level_set[node]);
    require(number < forest_.level_sets.size() / 4, "an unknown set of levels");
    packed_.sets.push_back(forest_.left_codes(node));
    return packed_.sets.size() - 1;
  }

  const Forest& forest_;
  std::size_t n_outputs_, n_columns_;
  UsedColumns used_;
  std::vector<int> depth_;  // of the tree's nodes
  Packed packed_;
};

constexpr std::size_t lanes = 8;  // rows that walk together: their loads overlap
// Rows of a block fit the L1 cache; if the trees do not fit, thousands of rows must share the cost
// of loading a tree.
constexpr std::size_t block_bytes = 32 * 1024, large_block_bytes = 4096 * 1024;
constexpr std::size_t large_forest = 16384;       // nodes
constexpr std::size_t leaves_bytes = 128 * 1024;  // in all trees, of the rows of a block
constexpr double infinity = std::numeric_limits<double>::infinity();

// Rows as doubles, row-major, each ending with the leaves' column.
class Block {
 public:
  Block(const Columns& table, const std::vector<UsedColumn>& columns, std::size_t rows)
      : table_(table),
        columns_(columns),
        stride_(columns.size() + 1),
        values_(rows * stride_, -infinity) {}

  static std::size_t capacity(const Packed& packed) {
    const bool is_large = packed.nodes.size() > large_forest;
    const std::size_t row_bytes = (packed.columns.size() + 1) * sizeof(double);
    const std::size_t rows = (is_large ? large_block_bytes : block_bytes) / row_bytes;
    return std::max(lanes, std::min(rows, is_large ? rows : block_rows) / lanes * lanes);
  }
  std::size_t stride() const { return stride_; }
  const double* row(std::size_t i) const { return values_.data() + i * stride_; }

  // Returns true if a value is missing.
  bool read(std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += block_rows)
      read_columns(table_, columns_, at, std::min(end, at + block_rows),
                   values_.data() + (at - begin) * stride_, 1, stride_);
    const std::size_t n = (end - begin) * stride_;
    bool missing = false;
    for (std::size_t i = 0; i < n; ++i) missing |= std::isnan(values_[i]);
    return missing;
  }

 private:
  const Columns& table_;
  const std::vector<UsedColumn>& columns_;
  std::size_t stride_;
  std::vector<double> values_;
};

// Leaves of `n` rows in one tree.
template <std::size_t n, bool with_missing, bool with_sets>
inline void walk(const Node* nodes, int depth, const CodeSet* sets, const double* rows,
                 std::size_t stride, std::uint32_t* at) {
  for (std::size_t lane = 0; lane < n; ++lane) at[lane] = 0;
  for (int level = 0; level < depth; ++level) {
    std::uint32_t moved = 0;
    for (std::size_t lane = 0; lane < n; ++lane) {
      const std::uint32_t next =
          step<with_missing, with_sets>(nodes[at[lane]], sets, rows + lane * stride);
      moved |= next ^ at[lane];
      at[lane] = next;
    }
    if (moved == 0) break;  // uneven trees: all have arrived before the deepest leaf
  }
}

// Leaves of one row in `n` trees.
template <std::size_t n, bool with_missing, bool with_sets>
inline void walk_trees(const Packed& packed, const Tree* trees, const double* row,
                       std::uint32_t* at) {
  const Node* nodes[n];
  int depth = 0;
  for (std::size_t lane = 0; lane < n; ++lane) {
    nodes[lane] = packed.nodes.data() + trees[lane].first;
    depth = std::max(depth, trees[lane].depth);
    at[lane] = 0;
  }
  for (int level = 0; level < depth; ++level) {
    std::uint32_t moved = 0;
    for (std::size_t lane = 0; lane < n; ++lane) {
      const std::uint32_t next =
          step<with_missing, with_sets>(nodes[lane][at[lane]], packed.sets.data(), row);
      moved |= next ^ at[lane];
      at[lane] = next;
    }
    if (moved == 0) break;
  }
}

// Sink of the leaves of `n` rows in tree t that adds their values to the scores of the block.
struct AddValues {
  const Packed& packed;
  const double* value;  // of the forest's leaves
  std::size_t width, n_outputs;
  double* scores;

  template <std::size_t n>
  void take(std::size_t t, std::size_t row, const std::uint32_t* at) const {
    const Tree& tree = packed.trees[t];
    double* score = scores + row * n_outputs;
    for (std::size_t lane = 0; lane < n; ++lane, score += n_outputs) {
      if (width == 1) {
        score[tree.output] += packed.nodes[tree.first + at[lane]].threshold;
        continue;
      }
      const double* leaf = value + (tree.first_value + at[lane]) * width;
      for (std::size_t k = 0; k < width; ++k) score[k] += leaf[k];
    }
  }
};

// Sink that stores the leaves.
struct KeepLeaves {
  std::uint32_t* leaf;
  std::size_t stride;

  template <std::size_t n>
  void take(std::size_t t, std::size_t row, const std::uint32_t* at) const {
    std::copy_n(at, n, leaf + t * stride + row);
  }
};

template <bool with_missing, bool with_sets, class Taker>
void run_block(const Packed& packed, const Block& block, std::size_t n, const Taker& taker) {
  std::uint32_t at[lanes];
  const CodeSet* sets = packed.sets.data();
  const std::size_t full = n / lanes * lanes;
  for (std::size_t t = 0; t < packed.trees.size(); ++t) {
    const Tree& tree = packed.trees[t];
    const Node* nodes = packed.nodes.data() + tree.first;
    for (std::size_t i = 0; i < full; i += lanes) {
      walk<lanes, with_missing, with_sets>(nodes, tree.depth, sets, block.row(i), block.stride(),
                                           at);
      taker.template take<lanes>(t, i, at);
    }
    for (std::size_t i = full; i < n; ++i) {
      walk<1, with_missing, with_sets>(nodes, tree.depth, sets, block.row(i), block.stride(), at);
      taker.template take<1>(t, i, at);
    }
  }
}

// The trees of one row, several at a time: loads overlap, and so do the walks of one tree and what
// the last ones add.
template <bool with_missing, bool with_sets, class Taker>
void run_row(const Packed& packed, const double* row, const Taker& taker) {
  std::uint32_t at[lanes];
  const std::size_t n = packed.trees.size(), full = n / lanes * lanes;
  const Tree* trees = packed.trees.data();
  for (std::size_t t = 0; t < full; t += lanes) {
    walk_trees<lanes, with_missing, with_sets>(packed, trees + t, row, at);
    for (std::size_t lane = 0; lane < lanes; ++lane) taker.template take<1>(t + lane, 0, at + lane);
  }
  for (std::size_t t = full; t < n; ++t) {
    walk_trees<1, with_missing, with_sets>(packed, trees + t, row, at);
    taker.template take<1>(t, 0, at);
  }
}

// The rows from `begin` to `end`, which fit the block.
template <class Taker>
void run_rows(const Packed& packed, Block& block, std::size_t begin, std::size_t end,
              const Taker& taker) {
  const bool missing = block.read(begin, end), has_sets = !packed.sets.empty();
  const auto run = has_sets
                       ? (missing ? run_block<true, true, Taker> : run_block<false, true, Taker>)
                   : missing ? run_block<true, false, Taker>
                             : run_block<false, false, Taker>;
  run(packed, block, end - begin, taker);
}

// Blocks of about a fifth of a millisecond: long compared with thread synchronisation, short
// compared with the interval of Ctrl-C checks. Reading eight values costs about as much as one
// tree.
std::size_t blocks_per_chunk(const Packed& packed, std::size_t rows) {
  constexpr std::size_t visits = 16384;
  const std::size_t n = visits / (1 + packed.trees.size() + packed.columns.size() / 8);
  return std::max(lanes, n) / rows + 1;
}

}  // namespace

void read_columns(const Columns& table, std::span<const UsedColumn> columns, std::size_t begin,
                  std::size_t end, double* values, std::size_t next_column, std::size_t next_row) {
  for (const UsedColumn& column : columns) {
    read_block(table.columns[column.feature], begin, end, values, next_row);
    for (std::size_t i = 0; column.of_codes && i < end - begin; ++i)
      values[i * next_row] = level_or_missing(values[i * next_row]);
    values += next_column;
  }
}

Packed pack_trees(const Forest& forest, TreeRange range, std::size_t n_columns,
                  std::size_t n_outputs) {
  require(range.begin <= range.end && range.end < forest.tree_start.size(), "trees out of range");
  return Packer(forest, n_columns, n_outputs).pack(range);
}

void walk_values(const Columns& table, const Packed& packed, const Forest& forest,
                 std::size_t n_outputs, Team& team, double* scores) {
  // Small tables are split among the members as well.
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t share = (table.n_rows / (2 * members) + lanes) / lanes * lanes;
  const std::size_t rows = std::min(Block::capacity(packed), share);
  const std::size_t grain = blocks_per_chunk(packed, rows) * rows;
  team.for_chunks(0, table.n_rows, grain, [&](std::size_t begin, std::size_t end, int) {
    Block block(table, packed.columns, std::min(rows, end - begin));
    for (std::size_t at = begin; at < end; at += rows) {
      const AddValues taker{packed, forest.value.data(), forest.width, n_outputs,
                            scores + at * n_outputs};
      run_rows(packed, block, at, std::min(end, at + rows), taker);
    }
  });
}

void walk_leaves(const Columns& table, const Packed& packed, std::size_t n_trees, Team& team,
                 FunctionRef<void(const LeafBlock&, int member)> consume) {
  const std::size_t fitting = leaves_bytes / (n_trees * sizeof(std::uint32_t) + 1) / lanes * lanes;
  const std::size_t rows = std::clamp(fitting, lanes, std::max(lanes, Block::capacity(packed)));
  const std::size_t grain = blocks_per_chunk(packed, rows) * rows;
  team.for_chunks(0, table.n_rows, grain, [&](std::size_t begin, std::size_t end, int member) {
    Block block(table, packed.columns, rows);
    std::vector<std::uint32_t> leaf(n_trees * rows);
    for (std::size_t at = begin; at < end; at += rows) {
      const std::size_t stop = std::min(end, at + rows);
      run_rows(packed, block, at, stop, KeepLeaves{leaf.data(), rows});
      consume({leaf.data(), rows, at, stop}, member);
    }
  });
}

void walk_row(const Packed& packed, const Forest& forest, std::size_t n_outputs, double* row,
              double* scores) {
  row[packed.columns.size()] = -infinity;
  bool missing = false;
  for (std::size_t i = 0; i < packed.columns.size(); ++i) missing |= std::isnan(row[i]);
  const AddValues taker{packed, forest.value.data(), forest.width, n_outputs, scores};
  if (!packed.sets.empty())
    run_row<true, true>(packed, row, taker);
  else if (missing)
    run_row<true, false>(packed, row, taker);
  else
    run_row<false, false>(packed, row, taker);
}

void traverse(const Columns& table, const Forest& forest, TreeRange trees, std::size_t n_outputs,
              Team& team, double* scores) {
  if (forest.width != 1 && forest.width != n_outputs)
    throw std::invalid_argument("leaves that do not fit the outputs");
  const Packed packed = pack_trees(forest, trees, table.columns.size(), n_outputs);
  walk_values(table, packed, forest, n_outputs, team, scores);
}

void traverse_leaves(const Columns& table, const Forest& forest, std::size_t n_trees, Team& team,
                     FunctionRef<void(const LeafBlock&, int member)> consume) {
  constexpr std::size_t any_outputs = std::numeric_limits<std::size_t>::max();
  const Packed packed = pack_trees(forest, {0, n_trees}, table.columns.size(), any_outputs);
  walk_leaves(table, packed, n_trees, team, consume);
}

}  // namespace arboost
