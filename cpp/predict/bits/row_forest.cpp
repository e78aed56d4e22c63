// Preparation of the forest, linear in nodes and single-threaded; and the prediction of one row.
#include "predict/bits/row_forest.h"

#include <array>
#include <cmath>
#include <cstring>  // memcpy
#include <utility>  // move

namespace arboost {
namespace {

constexpr std::size_t most_tests = 16384;  // whose answers still fit the stack and the cache

// Ones followed by zeros: a window of it has the results of a column's tests.
struct Unary {
  static constexpr std::size_t most = 256;
  constexpr Unary() : bytes() {
    for (std::size_t i = 0; i < most; ++i) bytes[i] = 1;
  }
  std::uint8_t bytes[2 * most];
};
constexpr Unary unary;

// Copies in pieces of constant size: no call, and no branch that depends on the row.
inline void copy_answers(const std::uint8_t* from, std::size_t n, std::uint8_t* to) {
  constexpr std::size_t piece = 32;
  if (n < piece) {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (std::size_t i = 0; i + piece < n; i += piece) std::memcpy(to + i, from + i, piece);
  std::memcpy(to + n - piece, from + n - piece, piece);
}

// Full trees: tests[i] is that of node i, from 1 on, whose children are 2 i and 2 i + 1.
template <int depth>
double add_full(const std::uint16_t* tests, const std::uint8_t* answers, const double* values,
                std::size_t n_trees, double sum) {
  constexpr std::size_t size = std::size_t{1} << depth;
  for (std::size_t t = 0; t < n_trees; ++t, tests += size, values += size) {
    std::size_t node = 1;
    for (int level = 0; level < depth; ++level) node = 2 * node + answers[tests[node]];
    sum += values[node - size];
  }
  return sum;
}

// Uneven trees: the number of nodes, and for each node its test and left child. A leaf has the test
// that is always false, and is its own child.
double add_uneven(const std::uint16_t* program, const std::uint8_t* answers, const double* values,
                  std::size_t n_trees, double sum) {
  for (std::size_t t = 0; t < n_trees; ++t) {
    const std::size_t n_nodes = *program++;
    std::size_t node = 0, last;
    do {
      last = node;
      node = program[2 * node + 1] + std::size_t{answers[program[2 * node]]};
    } while (node != last);
    sum += values[node];
    program += 2 * n_nodes;
    values += n_nodes;
  }
  return sum;
}

using Run = double (*)(const std::uint16_t* program, const std::uint8_t* answers,
                       const double* values, std::size_t n_trees, double sum);

template <int... depths>
constexpr std::array<Run, sizeof...(depths)> runs_of(std::integer_sequence<int, depths...>) {
  return {add_full<depths>...};
}
constexpr auto full_runs = runs_of(std::make_integer_sequence<int, 9>());  // by depth

Run run_of(int depth) {
  const auto number = static_cast<std::size_t>(depth);
  return number < full_runs.size() ? full_runs[number] : add_uneven;
}

}  // namespace

std::optional<RowForest> RowForest::make(const BitForest& bits, const Forest& forest) {
  std::size_t n_tests = 0;
  for (const BitForest::Group& group : bits.groups) n_tests += group.trees.n_tests;
  if (n_tests > most_tests || forest.width != 1) return std::nullopt;
  RowForest rows;
  rows.bit_values_ = &bits.values;
  rows.add_columns(bits);
  std::uint32_t first_test = 0;
  for (const BitForest::Group& group : bits.groups) {
    for (const BitTree& tree : group.trees.trees)
      rows.add_tree(bits, group.trees, tree, first_test,
                    forest.value.data() + forest.tree_start[tree.number]);
    first_test += static_cast<std::uint32_t>(group.trees.n_tests);
  }
  return rows;
}

// Columns of all groups, grouped by feature.
void RowForest::add_columns(const BitForest& bits) {
  for (std::size_t v = 0; v < bits.values.size(); ++v) {
    const auto begin = static_cast<std::uint32_t>(columns_.size());
    std::size_t missing = 0;
    std::uint32_t first_test = 0;
    for (const BitForest::Group& group : bits.groups) {
      for (std::size_t c = 0; c < group.columns.size(); ++c) {
        if (group.columns[c].values != v) continue;
        const BitColumn& column = group.trees.columns[c];
        const bool by_sets = column.n_sets > 0;
        const auto first_set = static_cast<std::uint32_t>(sets_.size());
        missing = group.columns[c].codes.size() - 1;
        columns_.push_back({group.columns[c].codes.data(), by_sets ? column.n_sets : column.n,
                            by_sets ? first_set : first_test + column.first, by_sets});
        for (std::uint32_t i = 0; i < column.n_sets; ++i) {
          const BitSet& set = group.trees.sets[column.first + i];
          sets_.push_back({first_test + set.test, set.right});
        }
      }
      first_test += static_cast<std::uint32_t>(group.trees.n_tests);
    }
    values_of_.push_back(
        {&bits.values[v], missing, begin, static_cast<std::uint32_t>(columns_.size())});
  }
}

void RowForest::add_tree(const BitForest& bits, const BitGroup& group, const BitTree& tree,
                         std::uint32_t first_test, const double* values) {
  const int depth = tree.even ? tree.bits : -1;
  if (runs_.empty() || runs_.back().depth != depth || runs_.back().output != tree.output)
    runs_.push_back({depth, tree.output, 0, program_.size(), values_.size()});
  ++runs_.back().n_trees;
  const std::uint32_t* program = group.program.data() + tree.program;
  // The always-false test is the first of every group; here one suffices.
  const auto test_of = [&](std::uint32_t word) {
    return static_cast<std::uint16_t>(word == 0 ? 0 : first_test + word / bit_words);
  };
  if (tree.even) {
    const std::size_t size = std::size_t{1} << tree.bits;
    program_.push_back(0);
    for (std::size_t i = 0; i + 1 < size; ++i) program_.push_back(test_of(program[i]));
    for (std::size_t i = 0; i < size; ++i)
      values_.push_back(values[bits.leaf_nodes[tree.leaves + i]]);
    return;
  }
  const std::size_t n_nodes = 2 * tree.n_splits + 1;
  program_.push_back(static_cast<std::uint16_t>(n_nodes));
  const std::size_t first = program_.size();
  for (std::size_t i = 0; i < n_nodes; ++i) {
    program_.push_back(test_of(0));
    program_.push_back(static_cast<std::uint16_t>(i));
  }
  for (std::size_t i = 0; i < tree.n_splits; ++i, program += 3) {
    program_[first + 2 * program[1]] = test_of(program[0]);
    program_[first + 2 * program[1] + 1] = static_cast<std::uint16_t>(program[2]);
  }
  values_.insert(values_.end(), values, values + n_nodes);
}

void RowForest::answer(const double* row, std::uint8_t* answers) const {
  for (const Values& feature_values : values_of_) {
    const double x = *row++;
    std::size_t number = feature_values.missing;
    if (feature_values.values->of_levels) {
      if (x >= 0 && x < missing_level && x == std::floor(x)) number = static_cast<std::size_t>(x);
    } else if (!std::isnan(x)) {
      number = feature_values.values->lookup.code(x);
    }
    for (std::uint32_t c = feature_values.begin; c < feature_values.end; ++c) {
      const Column& column = columns_[c];
      const std::uint32_t code = column.codes[number];
      if (column.by_sets) {
        for (std::uint32_t i = column.first; i < column.first + column.n; ++i)
          answers[sets_[i].test] = holds(sets_[i].right, code);
        continue;
      }
      copy_answers(unary.bytes + Unary::most - code, column.n, answers + column.first);
    }
  }
}

void RowForest::add(const double* x, double* scores) const {
  std::uint8_t answers[most_tests];
  answers[0] = 0;
  answer(x, answers);
  for (const Run& run : runs_)
    scores[run.output] =
        run_of(run.depth)(program_.data() + run.program, answers, values_.data() + run.values,
                          run.n_trees, scores[run.output]);
}

}  // namespace arboost
