// Forest -> nodes with threshold ranks; table -> ranks -> scores.
#include "predict/coded.h"

#include <algorithm>
#include <bit>  // bit_cast, bit_ceil, bit_width
#include <cmath>
#include <unordered_map>

namespace arboost {
namespace {

constexpr std::size_t lanes = 8;  // rows that walk together: their loads overlap

// Ranks are doubled, so that the lowest bit of a node's rank is free for the side of missing
// values, without effect on comparisons with even ranks. The rank of a missing value is above all
// others.
constexpr std::uint16_t missing = 0xFFFF;
constexpr std::size_t most_thresholds = missing / 2 - 1;
constexpr std::size_t most_columns = 0x8000;

constexpr std::size_t line = 64 / sizeof(std::uint64_t);  // nodes in a line of the cache

// Bytes of a block: with a tree of some ten thousand nodes it fits the L2 cache.
constexpr std::size_t block_bytes = 2048 * 1024;
constexpr std::size_t most_rows = 32768;

// Cost of ranking a value, in steps of a walk.
constexpr double steps_per_value = 8;

// The row's rank is added to the node's 0xFFFF - rank: a carry into `next` selects the right child,
// exactly if the row's rank is larger.
//
//   next (32 bits) | 0xFFFF - number (16) | column (16)
//
// A leaf is its own child: it tests the last column of a row, which is 0. The number of columns is
// a power of two, so that no other column has all bits of the last one.
std::uint64_t packed_node(std::uint64_t next, std::uint64_t column, std::uint64_t number) {
  return next << 32 | (0xFFFF - number) << 16 | column;
}

struct HashOfBits {
  std::size_t operator()(double x) const {
    const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);  // zeros of both signs are equal
    return static_cast<std::size_t>((bits * 0x9E3779B97F4A7C15u) >> 24);
  }
};

// Distinct thresholds of a feature.
struct Thresholds {
  std::unordered_map<double, std::uint32_t, HashOfBits> number;  // in the order of first occurrence
  std::vector<std::uint16_t> rank;  // of each, in the order of their values
  std::size_t column = 0;

  std::vector<double> sort() {
    std::vector<double> sorted(number.size());
    for (const auto& [threshold, i] : number) sorted[i] = threshold;
    std::sort(sorted.begin(), sorted.end());
    rank.resize(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      rank[number.at(sorted[i])] = static_cast<std::uint16_t>(i);
    return sorted;
  }
};

class Coder {
 public:
  Coder(const Forest& forest, std::size_t n_columns) : forest_(forest), thresholds_(n_columns) {}

  std::optional<CodedForest> code() {
    if (!forest_.level_sets.empty() || !number_thresholds() || !pays()) return std::nullopt;
    for (std::size_t feature = 0; feature < thresholds_.size(); ++feature) {
      Thresholds& thresholds = thresholds_[feature];
      if (thresholds.number.empty()) continue;
      thresholds.column = coded_.columns.size();
      coded_.columns.push_back({feature, {thresholds.sort(), rows_to_expect}});
    }
    coded_.stride = std::bit_ceil(coded_.columns.size() + 1);
    coded_.nodes.reserve(forest_.left.size() + (line + 1) * forest_.output.size());
    coded_.origin.reserve(coded_.nodes.capacity());
    for (std::size_t t = 0; t < forest_.output.size(); ++t) code_tree(t);
    return std::move(coded_);
  }

 private:
  // Expected number of rows, for the size of the look-up tables.
  static constexpr std::size_t rows_to_expect = 1 << 16;

  Thresholds& thresholds_of(std::size_t node) {
    return thresholds_[static_cast<std::size_t>(forest_.feature[node])];
  }

  bool number_thresholds() {
    number_.resize(forest_.left.size());
    for (std::size_t i = 0; i < number_.size(); ++i) {
      if (forest_.left[i] == 0) continue;
      auto& known = thresholds_of(i).number;
      n_used_ += known.empty();
      const auto next = static_cast<std::uint32_t>(known.size());
      number_[i] = known.try_emplace(forest_.threshold[i], next).first->second;
      if (known.size() > most_thresholds || std::isnan(forest_.threshold[i])) return false;
    }
    return n_used_ < most_columns;
  }

  // True if the steps of a row through all trees outweigh the ranking of its values.
  bool pays() const {
    double steps = 0;
    for (std::size_t t = 0; t < forest_.output.size(); ++t) {
      const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
      const auto size = static_cast<std::size_t>(forest_.tree_start[t + 1]) - first;
      steps += static_cast<double>(std::bit_width(size));
    }
    return steps > steps_per_value * static_cast<double>(n_used_);
  }

  void code_tree(std::size_t t) {
    const auto first = static_cast<std::size_t>(forest_.tree_start[t]);
    const auto size = static_cast<std::size_t>(forest_.tree_start[t + 1]) - first;
    const std::size_t begin = coded_.nodes.size();
    place_nodes(first, size);
    coded_.nodes.resize(begin + (size + 1 + line - 1) / line * line);
    coded_.origin.resize(coded_.nodes.size());
    for (std::size_t i = 0; i < size; ++i) {
      coded_.origin[begin + place_[i]] = static_cast<std::uint32_t>(i);
      coded_.nodes[begin + place_[i]] = code_node(first + i, i);
    }
    coded_.trees.push_back({begin, first, static_cast<std::uint32_t>(forest_.output[t])});
  }

  std::uint64_t code_node(std::size_t node, std::size_t i) {
    if (forest_.left[node] == 0) return packed_node(place_[i], coded_.stride - 1, missing);
    const Thresholds& thresholds = thresholds_of(node);
    const std::uint64_t number =
        2u * thresholds.rank[number_[node]] + (forest_.default_left[node] ? 1u : 0u);
    return packed_node(place_[static_cast<std::size_t>(forest_.left[node])], thresholds.column,
                       number);
  }

  // Places the children of a node next to it, the child with the larger subtree first: a walk then
  // mostly stays in its cache line.
  void place_nodes(std::size_t first, std::size_t size) {
    const std::int32_t* left = forest_.left.data() + first;
    below_.assign(size, 1);
    for (std::size_t i = size; i-- > 0;)
      if (left[i] != 0) below_[i] += below_[left[i]] + below_[left[i] + 1];
    place_.resize(size);
    place_[0] = CodedForest::root;
    std::uint32_t next = CodedForest::root + 1;
    open_.assign(1, 0);
    while (!open_.empty()) {
      const auto l = static_cast<std::uint32_t>(left[open_.back()]);
      open_.pop_back();
      if (l == 0) continue;
      place_[l] = next++;
      place_[l + 1] = next++;
      const bool left_first = below_[l] >= below_[l + 1];
      open_.push_back(left_first ? l + 1 : l);
      open_.push_back(left_first ? l : l + 1);
    }
  }

  const Forest& forest_;
  std::vector<Thresholds> thresholds_;        // of each feature
  std::size_t n_used_ = 0;                    // features
  std::vector<std::uint32_t> number_;         // of each split's threshold
  std::vector<std::uint32_t> place_, below_;  // of the tree's nodes; nodes from each one down
  std::vector<std::uint32_t> open_;           // nodes whose children have no index yet
  CodedForest coded_;
};

// Rows as ranks, row-major, each ending with the leaves' column of zeros.
class Block {
 public:
  Block(const Columns& table, const CodedForest& coded, std::size_t n_rows)
      : table_(table), coded_(coded), stride_(coded.stride), numbers_(n_rows * stride_) {}

  static std::size_t capacity(std::size_t stride) {
    const std::size_t rows = block_bytes / (stride * sizeof(std::uint16_t));
    return std::clamp(rows / lanes * lanes, lanes, most_rows);
  }
  std::size_t stride() const { return stride_; }
  const std::uint16_t* row(std::size_t i) const { return numbers_.data() + i * stride_; }

  // Returns true if a value is missing. Reads few rows at a time, so that a row-major table stays
  // in the cache from one column to the next.
  bool read(std::size_t begin, std::size_t end) {
    bool any = false;
    for (std::size_t at = begin; at < end; at += block_rows) {
      std::uint16_t* numbers = numbers_.data() + (at - begin) * stride_;
      for (const CodedForest::Column& column : coded_.columns)
        any |= read_column(column, at, std::min(end, at + block_rows), numbers++);
    }
    return any;
  }

 private:
  bool read_column(const CodedForest::Column& column, std::size_t begin, std::size_t end,
                   std::uint16_t* numbers) {
    const std::size_t n = end - begin;
    read_block(table_.columns[column.feature], begin, end, values_, 1);
    const bool any_missing = column.lookup.codes(values_, n, buckets_, codes_);
    for (std::size_t i = 0; i < n; ++i)
      numbers[i * stride_] = static_cast<std::uint16_t>(2 * codes_[i]);
    if (any_missing)
      for (std::size_t i = 0; i < n; ++i)
        if (std::isnan(values_[i])) numbers[i * stride_] = missing;
    return any_missing;
  }

  const Columns& table_;
  const CodedForest& coded_;
  std::size_t stride_;
  std::vector<std::uint16_t> numbers_;
  double values_[block_rows];  // of one column, as the next two
  std::uint16_t codes_[block_rows];
  std::uint32_t buckets_[block_rows];
};

// Leaves of `n` rows in one tree. With a constant stride, lanes stay in registers.
template <std::size_t n, bool with_missing, std::size_t known_stride>
inline void walk(const std::uint64_t* nodes, const std::uint16_t* rows, std::size_t any_stride,
                 std::uint64_t* out) {
  const std::size_t stride = known_stride > 0 ? known_stride : any_stride;
  const std::uint64_t last = stride - 1;
  std::uint64_t at[n];
  for (std::size_t lane = 0; lane < n; ++lane) at[lane] = CodedForest::root;
  std::uint64_t common;
  do {
    common = last;
    for (std::size_t lane = 0; lane < n; ++lane) {
      const std::uint64_t node = nodes[at[lane]];
      common &= node;
      std::uint64_t x = rows[lane * stride + static_cast<std::uint16_t>(node)];
      if constexpr (with_missing) x = x == missing && !(node >> 16 & 1) ? 0 : x;
      at[lane] = (node + (x << 16)) >> 32;
    }
  } while (common != last);  // until all are in leaves
  for (std::size_t lane = 0; lane < n; ++lane) out[lane] = at[lane];
}

template <bool with_missing, std::size_t known_stride>
void run_block(const CodedForest& coded, const Forest& forest, const Block& block, std::size_t n,
               std::size_t n_outputs, double* scores) {
  std::uint64_t at[lanes];
  const std::size_t width = forest.width, stride = coded.stride;
  for (const CodedForest::Tree& tree : coded.trees) {
    const std::uint64_t* nodes = coded.nodes.data() + tree.first;
    const std::uint32_t* origin = coded.origin.data() + tree.first;
    const double* values = forest.value.data() + tree.first_value * width;
    const auto take = [&](std::size_t row, std::size_t n_walked) {
      double* score = scores + row * n_outputs + tree.output;
      for (std::size_t lane = 0; lane < n_walked; ++lane, score += n_outputs)
        for (std::size_t k = 0; k < width; ++k) score[k] += values[origin[at[lane]] * width + k];
    };
    std::size_t row = 0;
    for (; row + lanes <= n; row += lanes) {
      walk<lanes, with_missing, known_stride>(nodes, block.row(row), stride, at);
      take(row, lanes);
    }
    for (; row < n; ++row) {
      walk<1, with_missing, known_stride>(nodes, block.row(row), stride, at);
      take(row, 1);
    }
  }
}

template <bool with_missing>
auto run_for(std::size_t stride) {
  return stride == 16   ? run_block<with_missing, 16>
         : stride == 32 ? run_block<with_missing, 32>
         : stride == 64 ? run_block<with_missing, 64>
                        : run_block<with_missing, 0>;
}

}  // namespace

std::optional<CodedForest> code_forest(const Forest& forest, std::size_t n_columns) {
  return Coder(forest, n_columns).code();
}

void traverse_coded(const Columns& table, const CodedForest& coded, const Forest& forest,
                    std::size_t n_outputs, Team& team, double* scores) {
  // Small tables are split among the members as well.
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t share = (table.n_rows / (2 * members) + lanes) / lanes * lanes;
  const std::size_t rows = std::min(Block::capacity(coded.stride), share);
  team.for_chunks(0, table.n_rows, rows, [&](std::size_t begin, std::size_t end, int) {
    Block block(table, coded, end - begin);
    const auto run =
        block.read(begin, end) ? run_for<true>(coded.stride) : run_for<false>(coded.stride);
    run(coded, forest, block, end - begin, n_outputs, scores + begin * n_outputs);
  });
}

}  // namespace arboost
