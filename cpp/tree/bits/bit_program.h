// A tree as a program over the results of its tests, for 512 rows at a time.
//
// A split is a test of a row. The results of a test for a block of rows are 512 bits. A tree is a
// Boolean formula over its tests; it yields the leaf numbers as bit planes: plane j has bit j of
// all rows' leaf numbers. Tests are given by the offset of their words; nobody passes the first
// test.
//
//   even     a full tree, whose missing splits are the first test: the tests level by
//            level, 2^depth - 1 of them. The number of a leaf is the path to it, its first step the
//            highest bit.
//   uneven   for each split in the order of the tree: test, node and left child. Leaves have their
//            numbers from left to right; then come, for each plane, the right children whose rows
//            flip the bit, and no_node.
#pragma once

#include <bit>  // bit_width
#include <cstddef>
#include <cstdint>
#include <utility>  // move
#include <vector>

namespace arboost {

constexpr std::size_t bit_rows = 512;             // of a block
constexpr std::size_t bit_words = bit_rows / 64;  // of a test
constexpr std::size_t most_bit_leaves = 256;      // of a tree: their numbers take one byte
constexpr std::uint32_t no_node = ~std::uint32_t{0};

constexpr int most_even_depth = 8;
// Largest ratio of splits of a full tree to real splits at which it is cheaper than an uneven tree.
constexpr std::size_t most_padding = 4;

// Words of scratch memory of an uneven tree: rows that reach each node.
constexpr std::size_t reached_words = 2 * most_bit_leaves * bit_words;

struct BitProgram {
  const std::uint32_t* steps;
  std::size_t n_splits;  // that exist
  int bits;              // of a leaf's number; the depth of an even tree
  bool even;
};

// Nodes, tests and leaves of a tree -> its program. left_of(node) is the left child, which the
// right one follows and which comes after its parent; 0 for a leaf.
template <class LeftOf, class TestNumber>
class ProgramMaker {
 public:
  ProgramMaker(std::size_t n_nodes, LeftOf left_of, TestNumber test_of)
      : n_nodes_(n_nodes), left_of_(left_of), test_of_(test_of) {
    std::vector<int> depth(n_nodes);
    for (std::size_t i = 0; i < n_nodes; ++i) {
      if (depth[i] > depth_) depth_ = depth[i];
      if (const std::uint32_t left = left_of(i); left != 0)
        depth[left] = depth[left + 1] = depth[i] + 1;
    }
  }

  // Appends the steps, and the leaves by number. The steps of the result are left empty.
  BitProgram add(std::vector<std::uint32_t>& steps, std::vector<std::uint32_t>& leaves) const {
    const std::size_t n_splits = n_nodes_ / 2;
    const bool even =
        depth_ <= most_even_depth && std::size_t{1} << depth_ <= most_padding * (n_splits + 1);
    const int bits = even ? depth_ : static_cast<int>(std::bit_width(n_splits));
    even ? add_even(steps, leaves) : add_uneven(bits, steps, leaves);
    return {nullptr, n_splits, bits, even};
  }

 private:
  void add_even(std::vector<std::uint32_t>& steps, std::vector<std::uint32_t>& leaves) const {
    std::vector<std::uint32_t> nodes{0};  // of a level; below a leaf the leaf itself
    for (int level = 0; level < depth_; ++level) {
      std::vector<std::uint32_t> next;
      for (const std::uint32_t node : nodes) {
        const std::uint32_t left = left_of_(node);
        steps.push_back(left == 0 ? 0 : test_of_(node));
        next.push_back(left == 0 ? node : left);
        next.push_back(left == 0 ? node : left + 1);
      }
      nodes = std::move(next);
    }
    leaves.insert(leaves.end(), nodes.begin(), nodes.end());
  }

  void add_uneven(int bits, std::vector<std::uint32_t>& steps,
                  std::vector<std::uint32_t>& leaves) const {
    std::vector<std::uint32_t> n_leaves(n_nodes_, 1), first_leaf(n_nodes_, 0);
    for (std::size_t i = n_nodes_; i-- > 0;)
      if (const std::uint32_t left = left_of_(i); left != 0)
        n_leaves[i] = n_leaves[left] + n_leaves[left + 1];
    const std::size_t before = leaves.size();
    leaves.resize(before + n_nodes_ / 2 + 1);
    for (std::uint32_t i = 0; i < n_nodes_; ++i) {
      const std::uint32_t left = left_of_(i);
      if (left == 0) {
        leaves[before + first_leaf[i]] = i;
        continue;
      }
      first_leaf[left] = first_leaf[i];
      first_leaf[left + 1] = first_leaf[i] + n_leaves[left];
      steps.insert(steps.end(), {test_of_(i), i, left});
    }
    for (int j = 0; j < bits; ++j) {
      for (std::size_t i = 0; i < n_nodes_; ++i)
        if (const std::uint32_t left = left_of_(i);
            left != 0 && ((first_leaf[left] ^ first_leaf[left + 1]) >> j & 1) != 0)
          steps.push_back(left + 1);
      steps.push_back(no_node);
    }
  }

  std::size_t n_nodes_;
  LeftOf left_of_;
  TestNumber test_of_;
  int depth_ = 0;
};

}  // namespace arboost
