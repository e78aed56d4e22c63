// Partitioned rows -> leaf of each row, sums of the leaves, scores. A few passes over the rows, in
// parallel.
//
// Leaf values come from the fixed-point gradients (30 bits each, 64-bit sums), not from the coarser
// integers of the split search: as precise as doubles, and independent of the row order.
#include "grow/rows/row_leaves.h"

#include <algorithm>
#include <mutex>

namespace arboost {
namespace {

constexpr std::size_t stretch_rows = 16384;

// Some of a leaf's rows.
struct LeafRows {
  const Element* elements;
  std::size_t n;
  std::uint32_t leaf;
};

// The positions of training rows that a sample left out, ascending.
std::vector<std::uint32_t> positions_outside(const TreeRows& sample, std::size_t n_training,
                                             Team& team) {
  std::vector<std::uint32_t> others(n_training - sample.n);
  const std::uint32_t *first = sample.positions, *last = first + sample.n;
  team.for_chunks(0, n_training, stretch_rows, [&](std::size_t begin, std::size_t end, int) {
    const std::uint32_t* drawn = std::lower_bound(first, last, begin);
    std::uint32_t* to = others.data() + (begin - static_cast<std::size_t>(drawn - first));
    for (std::size_t position = begin; position < end; ++position) {
      if (drawn < last && *drawn == position)
        ++drawn;
      else
        *to++ = static_cast<std::uint32_t>(position);
    }
  });
  return others;
}

}  // namespace

LeafSums RowLeaves::finish(const TreeShape& shape, const GrownTrees& forest,
                           const Gradients& gradients, std::size_t output, bool from_all_rows,
                           Team& team) {
  if (rows_.is_sample() && from_all_rows) return walk_all(shape, forest, gradients, output, team);
  make_room(space_.leaf_of_row, table_.n_rows);
  assign(shape, team);
  const TreePairs& pairs = rows_.pairs();
  return {node_sums(shape, pairs, team), pairs.g_exponent, pairs.h_exponent};
}

LeafSums RowLeaves::walk_all(const TreeShape& shape, const GrownTrees& forest,
                             const Gradients& gradients, std::size_t output, Team& team) {
  make_room(space_.leaf_of_row, table_.n_rows);
  rows_.use_all(gradients, output, team);
  const TreePairs& pairs = rows_.pairs();
  return {walked_sums(shape, pairs, forest, team), pairs.g_exponent, pairs.h_exponent};
}

LeafSums RowLeaves::sums_of(const TreeShape& shape, const Gradients& gradients, std::size_t output,
                            Team& team) {
  const TreePairs pairs = rows_.pairs_of_rows(gradients, output, team);
  return {node_sums(shape, pairs, team), pairs.g_exponent, pairs.h_exponent};
}

// Writes the leaf of each row: a leaf's rows are contiguous elements, but scattered in the table.
void RowLeaves::assign(const TreeShape& shape, Team& team) {
  constexpr std::size_t ahead = 64;
  const auto assign = [&](const LeafRows& rows) {
    std::uint32_t* leaves = space_.leaf_of_row.data();
    for (std::size_t i = 0; i < rows.n; ++i) {
      if (i + ahead < rows.n) prefetch(leaves + row_of(rows.elements[i + ahead]));
      leaves[row_of(rows.elements[i])] = rows.leaf;
    }
  };
  const auto each = [&](auto use) {
    for (std::size_t id = 0; id < shape.size(); ++id) {
      if (shape.left()[id] != 0) continue;
      const auto leaf = static_cast<std::uint32_t>(id);
      const auto [node, below] = shape.placed()[id];
      if (below != nullptr) {
        use(LeafRows{rows_.elements(*node) + (below->begin - node->begin),
                     below->end - below->begin, leaf});
        continue;
      }
      each_holder(node, [&](const GrowNode& holder) {
        rows_.each_range(holder, [&](const Element* elements, std::size_t n) {
          for (std::size_t at = 0; at < n; at += stretch_rows)
            use(LeafRows{elements + at, std::min(stretch_rows, n - at), leaf});
        });
      });
    }
  };
  if (team.size() == 1) return each(assign);
  std::vector<LeafRows> parts;
  each([&](const LeafRows& part) { parts.push_back(part); });
  const std::size_t grain = std::max<std::size_t>(1, parts.size() / 64);
  team.for_chunks(0, parts.size(), grain, [&](std::size_t first, std::size_t last, int) {
    for (std::size_t s = first; s < last; ++s) assign(parts[s]);
  });
}

// Sums [node][output][g, h] over rows in table order. Every chunk of rows has its own sums for all
// nodes, so a chunk should have many more rows than nodes, unless it is the only one.
class RowLeaves::NodeSums {
 public:
  NodeSums(std::size_t n_nodes, std::size_t width, bool in_one)
      : width_(width), in_one_(in_one), sums_(n_nodes * width * 2, 0) {}

  // Adds rows [begin, end), whose leaves leaf(i) gives.
  template <class LeafOf>
  void add(const TreePairs& pairs, std::size_t begin, std::size_t end, LeafOf leaf) {
    if (in_one_) return add_to(sums_, pairs, begin, end, leaf);
    std::vector<std::int64_t> sums(sums_.size(), 0);
    add_to(sums, pairs, begin, end, leaf);
    std::lock_guard lock(mutex_);
    for (std::size_t j = 0; j < sums_.size(); ++j) sums_[j] += sums[j];
  }

  // Adds the sums of other workers, and of inner nodes.
  std::vector<std::int64_t> with_inner(const std::vector<std::int32_t>& left_of,
                                       Collective& workers) {
    workers.sum(sums_);
    add_inner_sums(left_of, 2 * width_, sums_);
    return std::move(sums_);
  }

 private:
  template <class LeafOf>
  void add_to(std::vector<std::int64_t>& sums, const TreePairs& pairs, std::size_t begin,
              std::size_t end, LeafOf leaf) const {
    if (width_ == 1 && pairs.row_stride == 1) {  // the common case: no strides
      const FixedPair* pair = pairs.pairs;
      for (std::size_t i = begin; i < end; ++i) {
        std::int64_t* sum = sums.data() + std::size_t{2} * leaf(i);
        sum[0] += pair[i].g;
        sum[1] += pair[i].h;
      }
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t* sum = sums.data() + leaf(i) * 2 * width_;
      for (std::size_t k = 0; k < width_; ++k) {
        const FixedPair& pair = pairs.at(i, k);
        sum[2 * k] += pair.g;
        sum[2 * k + 1] += pair.h;
      }
    }
  }

  std::size_t width_;
  bool in_one_;  // chunk
  std::vector<std::int64_t> sums_;
  std::mutex mutex_;
};

std::vector<std::int64_t> RowLeaves::node_sums(const TreeShape& shape, const TreePairs& pairs,
                                               Team& team) {
  const TreeRows rows = rows_.rows();
  const std::size_t grain = std::max(stretch_rows, 16 * shape.size());
  NodeSums sums(shape.size(), width_, rows.n <= grain);
  team.for_chunks(0, rows.n, grain, [&](std::size_t begin, std::size_t end, int) {
    const std::uint32_t* leaf = space_.leaf_of_row.data();
    if (rows.is_all())
      sums.add(pairs, begin, end, [leaf](std::size_t i) { return leaf[i]; });
    else
      sums.add(pairs, begin, end, [leaf, rows](std::size_t i) { return leaf[rows.row(i)]; });
  });
  return sums.with_inner(shape.left(), workers_);
}

// The same for rows outside the tree's sample; also writes their leaves.
std::vector<std::int64_t> RowLeaves::walked_sums(const TreeShape& shape, const TreePairs& pairs,
                                                 const GrownTrees& forest, Team& team) {
  NodeSums sums(shape.size(), width_, false);
  const TreeRows rows = rows_.rows();
  forest.walk(forest.n_trees() - 1, table_, rows, team,
              [&](std::size_t begin, std::size_t end, const std::uint32_t* leaves) {
                std::uint32_t* noted = space_.leaf_of_row.data();
                if (rows.is_all())
                  std::copy(leaves, leaves + (end - begin), noted + begin);
                else
                  for (std::size_t i = begin; i < end; ++i) noted[rows.row(i)] = leaves[i - begin];
                sums.add(pairs, begin, end, [&](std::size_t i) { return leaves[i - begin]; });
              });
  return sums.with_inner(shape.left(), workers_);
}

void add_leaf_values(const GrownTrees& forest, const Codes& table, const TreeRows& rows,
                     std::size_t n_training, const std::uint32_t* leaf_of_row, ScoreRows scores,
                     Team& team) {
  const std::size_t last = forest.n_trees() - 1, width = forest.width;
  // Rows outside the sample still need a walk to their leaves. In a small tree, all rows walk
  // together.
  constexpr std::size_t small_tree = 512;
  if (rows.positions != nullptr && forest.n_nodes(last) < small_tree)
    return forest.add(last, table, {n_training, nullptr, rows.table_rows}, 1.0, scores, team);
  const double* values = forest.values(last);
  const auto add_leaf = [&](std::size_t position, std::uint32_t which) {
    const double* value = values + which * width;
    double* score = scores.scores + position * scores.stride;
    for (std::size_t k = 0; k < width; ++k) score[k] += value[k];
  };
  if (rows.positions != nullptr) {
    const std::vector<std::uint32_t> others = positions_outside(rows, n_training, team);
    const TreeRows outside{others.size(), others.data(), rows.table_rows};
    forest.walk(last, table, outside, team,
                [&](std::size_t begin, std::size_t end, const std::uint32_t* leaves) {
                  for (std::size_t i = begin; i < end; ++i) add_leaf(others[i], leaves[i - begin]);
                });
  }
  team.for_chunks(0, rows.n, stretch_rows, [&](std::size_t begin, std::size_t end, int) {
    double* score = scores.scores;
    const std::size_t stride = scores.stride;
    if (rows.is_all() && width == 1)  // the common case
      for (std::size_t i = begin; i < end; ++i) score[i * stride] += values[leaf_of_row[i]];
    else
      for (std::size_t i = begin; i < end; ++i)
        add_leaf(rows.position(i), leaf_of_row[rows.row(i)]);
  });
}

}  // namespace arboost
