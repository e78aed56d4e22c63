// Table -> codes of blocks of rows -> scores or leaves. Parallel over blocks.
#include <algorithm>

#include "predict/bits/bit_forest.h"

namespace arboost {
namespace {

// Memory of one thread.
struct Scratch {
  explicit Scratch(std::size_t n_values)
      : numbers(n_values * bit_rows), scratch(bit_scratch_words), leaves(bit_batch * bit_rows) {}

  void make_room(const BitGroup& group) {
    if (codes.size() < group.columns.size() * bit_rows)
      codes = Buffer<std::uint8_t>(group.columns.size() * bit_rows);
    if (tests.size() < group.n_tests * bit_words)
      tests = Buffer<std::uint64_t>(group.n_tests * bit_words);
  }

  Buffer<std::uint16_t> numbers;  // [values][row]
  Buffer<std::uint8_t> codes;     // [column][row]
  Buffer<std::uint64_t> tests, scratch;
  Buffer<std::uint8_t> leaves;  // [tree][index]
};

// Memory of all threads, allocated at first use.
class Memory {
 public:
  Memory(std::size_t n_values, const Team& team)
      : n_values_(n_values), members_(static_cast<std::size_t>(team.size())) {}
  Scratch& of(int member) {
    std::unique_ptr<Scratch>& memory = members_[static_cast<std::size_t>(member)];
    if (!memory) memory = std::make_unique<Scratch>(n_values_);
    return *memory;
  }

 private:
  std::size_t n_values_;
  std::vector<std::unique_ptr<Scratch>> members_;
};

// Ranks of the values of some rows, padded with 0. Returns true if a numerical value is missing.
bool number_values(const Columns& table, const BitForest& bits, std::size_t begin, std::size_t end,
                   std::uint16_t* numbers) {
  double values[block_rows];
  std::uint32_t buckets[block_rows];
  if (end - begin < bit_rows) std::fill_n(numbers, bits.values.size() * bit_rows, std::uint16_t{0});
  bool missing = false;
  for (std::size_t at = begin; at < end; at += block_rows) {
    const std::size_t stop = std::min(end, at + block_rows), n = stop - at;
    std::uint16_t* out = numbers + (at - begin);
    for (const BitForest::Values& feature_values : bits.values) {
      read_block(table.columns[feature_values.feature], at, stop, values, 1);
      if (feature_values.of_levels) {
        for (std::size_t i = 0; i < n; ++i)
          out[i] = static_cast<std::uint16_t>(level_or_missing(values[i]));
      } else {
        missing |= feature_values.lookup.codes(values, n, buckets, out);
      }
      out += bit_rows;
    }
  }
  return missing;
}

void code_columns(const BitForest::Group& group, const std::uint16_t* numbers,
                  std::uint8_t* codes) {
  for (const BitForest::Column& column : group.columns) {
    const std::uint16_t* number = numbers + column.values * bit_rows;
    const std::uint8_t* code = column.codes.data();
    if (column.equal)
      for (std::size_t row = 0; row < bit_rows; ++row)
        codes[row] = static_cast<std::uint8_t>(number[row]);
    else
      for (std::size_t row = 0; row < bit_rows; ++row) codes[row] = code[number[row]];
    codes += bit_rows;
  }
}

// Calls run(trees, n) for batches of the group's trees, once the leaves of a batch are found.
template <class Run>
void for_batches(const BitForest::Group& group, Scratch& memory, Run run) {
  const BitKernels& kernels = bit_kernels();
  memory.make_room(group.trees);
  code_columns(group, memory.numbers.data(), memory.codes.data());
  kernels.tests(group.trees, memory.codes.data(), memory.scratch.data(), memory.tests.data());
  const BitTree* tree = group.trees.trees.data();
  for (const BitTree* end = tree + group.trees.trees.size(); tree < end;) {
    const BitTree* stop = tree;
    while (stop < end && stop < tree + bit_batch && stop->output == tree->output) ++stop;
    const auto n = static_cast<std::size_t>(stop - tree);
    kernels.leaves(group.trees, tree, n, memory.tests.data(), memory.scratch.data(),
                   memory.leaves.data());
    run(tree, n);
    tree = stop;
  }
}

// Scores of a block, tree by tree.
class Adder {
 public:
  Adder(const Forest& forest, std::size_t n_outputs) : forest_(forest), n_outputs_(n_outputs) {
    const BitKernels& kernels = bit_kernels();
    for (std::size_t position = 0; position < bit_rows; ++position) {
      sum_row_[position] = static_cast<std::uint16_t>(kernels.sum_row(position));
      leaf_row_[position] = static_cast<std::uint16_t>(kernels.leaf_row(position));
    }
  }

  void add(const BitForest& bits, Scratch& memory, std::size_t n_rows, double* scores) const {
    constexpr std::uint32_t none = ~std::uint32_t{0};
    double sums[bit_rows];
    std::uint32_t output = none;  // whose sums these are
    for (const BitForest::Group& group : bits.groups)
      for_batches(group, memory, [&](const BitTree* trees, std::size_t n) {
        if (forest_.width != 1)
          return add_vectors(bits, trees, n, memory.leaves.data(), n_rows, scores);
        if (output != trees[0].output) {
          if (output != none) write_sums(sums, n_rows, scores + output);
          output = trees[0].output;
          read_sums(scores + output, n_rows, sums);
        }
        bit_kernels().add(trees, n, bits.packed.data(), memory.leaves.data(), sums);
      });
    if (output != none) write_sums(sums, n_rows, scores + output);
  }

 private:
  void read_sums(const double* scores, std::size_t n_rows, double* sums) const {
    for (std::size_t position = 0; position < bit_rows; ++position) {
      const std::size_t row = sum_row_[position];
      sums[position] = row < n_rows ? scores[row * n_outputs_] : 0.0;
    }
  }
  void write_sums(const double* sums, std::size_t n_rows, double* scores) const {
    for (std::size_t position = 0; position < bit_rows; ++position) {
      const std::size_t row = sum_row_[position];
      if (row < n_rows) scores[row * n_outputs_] = sums[position];
    }
  }

  void add_vectors(const BitForest& bits, const BitTree* trees, std::size_t n_trees,
                   const std::uint8_t* leaves, std::size_t n_rows, double* scores) const {
    const std::size_t width = forest_.width;
    for (std::size_t t = 0; t < n_trees; ++t, leaves += bit_rows) {
      const auto first = static_cast<std::size_t>(forest_.tree_start[trees[t].number]);
      const std::uint32_t* nodes = bits.leaf_nodes.data() + trees[t].leaves;
      for (std::size_t position = 0; position < bit_rows; ++position) {
        if (leaf_row_[position] >= n_rows) continue;
        const double* value = forest_.value.data() + (first + nodes[leaves[position]]) * width;
        double* score = scores + leaf_row_[position] * n_outputs_;
        for (std::size_t k = 0; k < width; ++k) score[k] += value[k];
      }
    }
  }

  const Forest& forest_;
  std::size_t n_outputs_;
  std::uint16_t sum_row_[bit_rows], leaf_row_[bit_rows];
};

}  // namespace

void traverse_bits(const Columns& table, const BitForests& bits, const Forest& forest,
                   std::size_t n_outputs, Team& team, double* scores) {
  const Adder adder(forest, n_outputs);
  Memory memory(bits.present.values.size(), team);
  team.for_chunks(0, table.n_rows, bit_rows, [&](std::size_t begin, std::size_t end, int member) {
    Scratch& scratch = memory.of(member);
    const bool missing = number_values(table, bits.present, begin, end, scratch.numbers.data());
    adder.add(missing ? bits.with_missing() : bits.present, scratch, end - begin,
              scores + begin * n_outputs);
  });
}

void bit_leaves(const Columns& table, const BitForests& both, std::size_t n_trees, Team& team,
                FunctionRef<void(const LeafBlock&, int member)> consume) {
  std::size_t leaf_row[bit_rows];
  for (std::size_t position = 0; position < bit_rows; ++position)
    leaf_row[position] = bit_kernels().leaf_row(position);
  Memory memory(both.present.values.size(), team);
  team.for_chunks(0, table.n_rows, bit_rows, [&](std::size_t begin, std::size_t end, int member) {
    Scratch& scratch = memory.of(member);
    const bool missing = number_values(table, both.present, begin, end, scratch.numbers.data());
    const BitForest& bits = missing ? both.with_missing() : both.present;
    std::vector<std::uint32_t> leaf_nodes(n_trees * bit_rows);
    for (const BitForest::Group& group : bits.groups)
      for_batches(group, scratch, [&](const BitTree* trees, std::size_t n) {
        const std::uint8_t* leaves = scratch.leaves.data();
        for (std::size_t t = 0; t < n; ++t, leaves += bit_rows) {
          if (trees[t].number >= n_trees) continue;
          const std::uint32_t* nodes = bits.leaf_nodes.data() + trees[t].leaves;
          std::uint32_t* out = leaf_nodes.data() + trees[t].number * bit_rows;
          for (std::size_t position = 0; position < bit_rows; ++position)
            out[leaf_row[position]] = nodes[leaves[position]];
        }
      });
    consume({leaf_nodes.data(), bit_rows, begin, end}, member);
  });
}

}  // namespace arboost
