// Table -> blocks of doubles that stay in the cache -> scores; each block passes all trees, several
// rows at a time. Cost: 1 to 2 ns a step of a row. Parallel over blocks.
#include "predict/traverse.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <vector>

#include "predict/pack.h"

namespace arboost {
namespace {

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
  Block(const Columns& table, const std::vector<Packed::Column>& columns, std::size_t rows)
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
      read_rows(at, std::min(end, at + block_rows), values_.data() + (at - begin) * stride_);
    const std::size_t n = (end - begin) * stride_;
    bool missing = false;
    for (std::size_t i = 0; i < n; ++i) missing |= std::isnan(values_[i]);
    return missing;
  }

 private:
  void read_rows(std::size_t begin, std::size_t end, double* values) {
    for (const Packed::Column& column : columns_) {
      read_block(table_.columns[column.feature], begin, end, values, stride_);
      if (column.of_codes) keep_codes(values, end - begin);
      ++values;
    }
  }

  void keep_codes(double* values, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) values[i * stride_] = level_or_missing(values[i * stride_]);
  }

  const Columns& table_;
  const std::vector<Packed::Column>& columns_;
  std::size_t stride_;
  std::vector<double> values_;
};

// The next node of a row.
template <bool with_missing, bool with_sets>
inline std::uint32_t step(const Node node, const CodeSet* sets, const double* row) {
  const double x = row[node.column & column_bits];
  std::uint32_t right = x > node.threshold;
  if constexpr (with_missing) right |= (x != x) & (node.column >> 31);
  if constexpr (with_sets)
    if (node.column & by_set)
      right =
          !holds(sets[std::bit_cast<std::uint64_t>(node.threshold)], static_cast<std::uint32_t>(x));
  return node.next + right;
}

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
