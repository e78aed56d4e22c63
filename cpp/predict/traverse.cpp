// Rows are read in blocks that stay in the cache, as doubles; each block meets all trees, several
// rows at a time. Cost: 1 to 2 ns a step of a row from node to node. Blocks run in parallel.
#include "predict/traverse.h"

#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <vector>

#include "grow/rule.h"  // CodeSet

namespace arboost {
namespace {

constexpr std::size_t lanes = 8;  // rows that walk together: their loads overlap
constexpr std::size_t block_bytes = 32 * 1024;
constexpr std::size_t leaves_bytes = 128 * 1024;  // in all trees, of the rows of a block
constexpr double infinity = std::numeric_limits<double>::infinity();

// A node as it is walked. A leaf leads to itself: it looks at a column that the block adds to the
// table and that is -infinity everywhere, which is never above a threshold. So the leaf's threshold
// is free to hold its value, and rows that have arrived can go on stepping beside the others.
struct Node {
  double threshold;
  std::uint32_t next;    // left child; the right one follows it
  std::uint32_t column;  // of the block, and the two flags below
};
constexpr std::uint32_t missing_right = 1u << 31;  // missing values go right
constexpr std::uint32_t by_set = 1u << 30;         // the bits of the threshold are a set's number
constexpr std::uint32_t column_bits = by_set - 1;

// In the columns that splits by sets look at, what is no level has this code.
constexpr std::uint32_t missing_code = 255;

struct Tree {
  std::size_t first;        // in the packed nodes
  std::size_t first_value;  // in the forest's nodes
  int depth;
  std::uint32_t output;
};

struct Packed {
  std::vector<Node> nodes;
  std::vector<Tree> trees;
  std::vector<CodeSet> sets;  // with a bit for the missing code
  struct Column {
    std::size_t feature;
    bool of_codes;  // for splits by sets
  };
  std::vector<Column> columns;  // of a block
};

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

class Packer {
 public:
  Packer(const Forest& forest, std::size_t n_columns, std::size_t n_outputs)
      : forest_(forest),
        n_outputs_(n_outputs),
        n_columns_(n_columns),
        column_of_(2 * n_columns, unused) {}

  Packed pack(TreeRange range) {
    const auto first = static_cast<std::size_t>(forest_.tree_start[range.begin]);
    const auto last = static_cast<std::size_t>(forest_.tree_start[range.end]);
    require(first <= last && last <= forest_.left.size(), "trees outside the nodes");
    packed_.nodes.resize(last - first);
    for (std::size_t t = range.begin; t < range.end; ++t) pack_tree(t, first);
    // Only now is the number of used columns known, and with it the place of the added one.
    for (Node& node : packed_.nodes)
      if (node.column == unused) node.column = static_cast<std::uint32_t>(packed_.columns.size());
    return std::move(packed_);
  }

 private:
  static constexpr std::uint32_t unused = column_bits;

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
      return {value, static_cast<std::uint32_t>(i), unused};
    }
    const auto left = static_cast<std::size_t>(forest_.left[node]);
    require(left > i && left + 1 < size, "a child outside its tree");
    depth_[left] = depth_[left + 1] = depth_[i] + 1;
    const bool has_set = forest_.level_set[node] >= 0;
    const std::uint32_t column =
        column_of(static_cast<std::size_t>(forest_.feature[node]), has_set);
    const auto next = static_cast<std::uint32_t>(left);
    if (has_set) return {std::bit_cast<double>(pack_set(node)), next, column | by_set};
    const std::uint32_t flag = forest_.default_left[node] ? 0 : missing_right;
    return {forest_.threshold[node], next, column | flag};
  }

  std::uint64_t pack_set(std::size_t node) {
    const auto number = static_cast<std::size_t>(forest_.level_set[node]);
    require(number < forest_.level_sets.size() / 4, "an unknown set of levels");
    CodeSet set;
    for (std::size_t w = 0; w < 4; ++w) set.words[w] = forest_.level_sets[4 * number + w];
    put(set, missing_code, forest_.default_left[node] != 0);
    packed_.sets.push_back(set);
    return packed_.sets.size() - 1;
  }

  std::uint32_t column_of(std::size_t feature, bool of_codes) {
    require(feature < n_columns_, "a split on an unknown column");
    std::uint32_t& column = column_of_[of_codes ? n_columns_ + feature : feature];
    if (column == unused) {
      column = static_cast<std::uint32_t>(packed_.columns.size());
      packed_.columns.push_back({feature, of_codes});
    }
    return column;
  }

  const Forest& forest_;
  std::size_t n_outputs_, n_columns_;
  std::vector<std::uint32_t> column_of_;  // block column of each feature's values, then codes
  std::vector<int> depth_;                // of the tree's nodes
  Packed packed_;
};

// Rows as doubles, row by row, with the leaves' column at the end of each.
class Block {
 public:
  Block(const Columns& table, const std::vector<Packed::Column>& columns)
      : table_(table),
        columns_(columns),
        stride_(columns.size() + 1),
        values_(capacity(columns.size()) * stride_, -infinity) {}

  static std::size_t capacity(std::size_t n_columns) {
    const std::size_t rows = block_bytes / ((n_columns + 1) * sizeof(double)) / lanes * lanes;
    return std::clamp(rows, lanes, block_rows);
  }
  std::size_t stride() const { return stride_; }
  const double* row(std::size_t i) const { return values_.data() + i * stride_; }

  // Returns whether a value is missing.
  bool read(std::size_t begin, std::size_t end) {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      double* values = values_.data() + column;
      read_block(table_.columns[columns_[column].feature], begin, end, values, stride_);
      if (columns_[column].of_codes) keep_codes(values, end - begin);
    }
    const std::size_t n = (end - begin) * stride_;
    bool missing = false;
    for (std::size_t i = 0; i < n; ++i) missing |= std::isnan(values_[i]);
    return missing;
  }

 private:
  void keep_codes(double* values, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) {
      double& value = values[i * stride_];
      const bool known = value >= 0 && value < missing_code && value == std::floor(value);
      value = known ? value : missing_code;
    }
  }

  const Columns& table_;
  const std::vector<Packed::Column>& columns_;
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
      const Node node = nodes[at[lane]];
      const double x = rows[lane * stride + (node.column & column_bits)];
      std::uint32_t right = x > node.threshold;
      if constexpr (with_missing) right |= (x != x) & (node.column >> 31);
      if constexpr (with_sets)
        if (node.column & by_set)
          right = !holds(sets[std::bit_cast<std::uint64_t>(node.threshold)],
                         static_cast<std::uint32_t>(x));
      const std::uint32_t next = node.next + right;
      moved |= next ^ at[lane];
      at[lane] = next;
    }
    if (moved == 0) break;  // uneven trees: all have arrived before the deepest leaf
  }
}

// What becomes of the leaves of `n` rows in the tree number t: they add to the scores of the block,
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

// or are kept.
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

// Blocks that take about a fifth of a millisecond: long beside a hand-over, short beside Ctrl-C.
// Reading eight values costs about what one tree does.
std::size_t blocks_per_chunk(const Packed& packed, std::size_t rows) {
  constexpr std::size_t visits = 16384;
  const std::size_t n = visits / (1 + packed.trees.size() + packed.columns.size() / 8);
  return std::max(lanes, n) / rows + 1;
}

}  // namespace

void traverse(const Columns& table, const Forest& forest, TreeRange trees, std::size_t n_outputs,
              Team& team, double* scores) {
  require(forest.width == 1 || forest.width == n_outputs, "leaves that do not fit the outputs");
  require(trees.begin <= trees.end && trees.end < forest.tree_start.size(), "trees out of range");
  const Packed packed = Packer(forest, table.columns.size(), n_outputs).pack(trees);
  const std::size_t rows = Block::capacity(packed.columns.size());
  const std::size_t grain = blocks_per_chunk(packed, rows) * rows;
  team.for_chunks(0, table.n_rows, grain, [&](std::size_t begin, std::size_t end, int) {
    Block block(table, packed.columns);
    for (std::size_t at = begin; at < end; at += rows) {
      const AddValues taker{packed, forest.value.data(), forest.width, n_outputs,
                            scores + at * n_outputs};
      run_rows(packed, block, at, std::min(end, at + rows), taker);
    }
  });
}

void traverse_leaves(const Columns& table, const Forest& forest, std::size_t n_trees, Team& team,
                     FunctionRef<void(const LeafBlock&, int member)> consume) {
  require(n_trees < forest.tree_start.size(), "trees out of range");
  const Packed packed = Packer(forest, table.columns.size(), 1).pack({0, n_trees});
  const std::size_t fitting = leaves_bytes / (n_trees * sizeof(std::uint32_t) + 1) / lanes * lanes;
  const std::size_t rows = std::clamp(fitting, lanes, Block::capacity(packed.columns.size()));
  const std::size_t grain = blocks_per_chunk(packed, rows) * rows;
  team.for_chunks(0, table.n_rows, grain, [&](std::size_t begin, std::size_t end, int member) {
    Block block(table, packed.columns);
    std::vector<std::uint32_t> leaf(n_trees * rows);
    for (std::size_t at = begin; at < end; at += rows) {
      const std::size_t stop = std::min(end, at + rows);
      run_rows(packed, block, at, stop, KeepLeaves{leaf.data(), rows});
      consume({leaf.data(), rows, at, stop}, member);
    }
  });
}

}  // namespace arboost
