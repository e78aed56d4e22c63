// Blocks of rows, in parallel; each block prepares one tree after the other and runs the kernel on
// all of its rows.
#include "explain/shap/shap.h"

#include <algorithm>
#include <stdexcept>  // invalid_argument
#include <vector>

namespace arboost {
namespace {

// Values and results of a block fit the L2 cache. But preparing a tree costs about as much as 50
// rows, so blocks of wide tables may be larger.
constexpr std::size_t block_bytes = 512 * 1024, wide_block_bytes = 32 * 1024 * 1024;
constexpr std::size_t most_rows = 512, enough_rows = 128;
constexpr std::size_t large_forest = std::size_t{1} << 20;  // nodes; Ctrl-C is heard after a block
// Scratch numbers of large trees, and of a single tree with many features on a path.
constexpr std::size_t most_scratch = std::size_t{1} << 22, largest_scratch = std::size_t{1} << 29;

// Rows of a block that needs `numbers` doubles per row; small tables are split among the team.
std::size_t rows_of_block(const ShapForest& forest, std::size_t n_rows, std::size_t numbers,
                          const Team& team) {
  const std::size_t most = forest.trees.left.size() > large_forest ? enough_rows : most_rows;
  const std::size_t row_bytes = 8 * numbers;
  const std::size_t fitting =
      std::max(block_bytes / row_bytes, std::min(enough_rows, wide_block_bytes / row_bytes));
  const auto members = static_cast<std::size_t>(team.size());
  const std::size_t share = (n_rows + 2 * members - 1) / (2 * members);
  return whole_lanes(std::max<std::size_t>(1, std::min({most, fitting, share})));
}

// Results of a block of rows, of all trees: [output][column or pair][row].
class BlockSums {
 public:
  BlockSums(const Columns& table, const ShapForest& forest, std::size_t rows, bool with_pairs)
      : forest_(forest),
        block_(table, forest.columns, rows),
        program_(forest, with_pairs),
        phi_(forest.n_outputs * forest.columns.size() * block_.stride()),
        pairs_(with_pairs ? forest.n_outputs * forest.n_pairs() * block_.stride() : 0) {}

  void sum(std::size_t begin, std::size_t end) {
    block_.read(begin, end);
    std::fill_n(phi_.data(), phi_.size(), 0.0);
    std::fill_n(pairs_.data(), pairs_.size(), 0.0);
    for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
      program_.set_tree(t);
      for (std::size_t k = 0; k < forest_.trees.width; ++k)
        add_tree(forest_.first_output(t) + k, k, end - begin);
    }
  }

  double phi(std::size_t output, std::size_t column, std::size_t row) const {
    return phi_[(output * forest_.columns.size() + column) * block_.stride() + row];
  }
  double pair(std::size_t output, std::size_t pair, std::size_t row) const {
    return pairs_[(output * forest_.n_pairs() + pair) * block_.stride() + row];
  }

 private:
  // Trees of one part need scratch for some rows at a time, reused by the next rows. For larger
  // trees, all rows pass a part before the next part is made, or as many rows as scratch has room
  // for.
  void add_tree(std::size_t output, std::size_t value, std::size_t n_rows) {
    const std::size_t size = program_.scratch_size();
    if (size > largest_scratch)
      throw std::invalid_argument(
          "a tree has too many splits and features on a path for SHAP values, which would need "
          "more "
          "than 4 GiB. Explain a model with shallower trees.");
    const bool is_whole = program_.n_parts() == 1;
    const std::size_t rows_at_once = std::max<std::size_t>(1, most_scratch / size) * shap_lanes;
    const std::size_t rows = is_whole ? n_rows : std::min(whole_lanes(n_rows), rows_at_once);
    const std::size_t needed = is_whole ? size : rows / shap_lanes * size;
    if (scratch_.size() < needed) scratch_ = Buffer<double>(needed);
    for (std::size_t begin = 0; begin < n_rows; begin += rows) {
      for (std::size_t part = 0; part < program_.n_parts(); ++part) {
        ShapRun run = program_.part(part, value);
        run.values = block_.values() + begin;
        run.stride = block_.stride();
        run.n_rows = std::min(rows, n_rows - begin);
        run.phi = phi_.data() + output * forest_.columns.size() * block_.stride() + begin;
        if (run.with_pairs)
          run.pairs = pairs_.data() + output * forest_.n_pairs() * block_.stride() + begin;
        run.scratch = scratch_.data();
        run.scratch_stride = is_whole ? 0 : size;
        shap_kernels().shap(run);
      }
    }
  }

  const ShapForest& forest_;
  ShapBlock block_;
  ShapProgram program_;
  Buffer<double> phi_, pairs_, scratch_;
};

// Runs `write` on the sums of each block of rows.
template <class Write>
void for_blocks(const Columns& table, const ShapForest& forest, Team& team, bool with_pairs,
                const Write& write) {
  if (table.n_rows == 0 || forest.columns.empty()) return;
  const std::size_t results = forest.columns.size() + (with_pairs ? forest.n_pairs() : 0);
  const std::size_t numbers = forest.columns.size() + forest.n_outputs * results;
  const std::size_t rows = rows_of_block(forest, table.n_rows, numbers, team);
  team.for_chunks(0, table.n_rows, rows, [&](std::size_t begin, std::size_t end, int) {
    BlockSums sums(table, forest, rows, with_pairs);
    sums.sum(begin, end);
    for (std::size_t row = begin; row < end; ++row) write(sums, row - begin, row);
  });
}

}  // namespace

void shap_expected(const ShapForest& forest, double* expected) {
  const Forest& trees = forest.trees;
  std::vector<double> mean;  // of the nodes of a tree
  for (std::size_t t = 0; t < forest.n_trees(); ++t) {
    const std::size_t first = forest.first_node(t), size = forest.first_node(t + 1) - first;
    mean.resize(size);
    for (std::size_t k = 0; k < trees.width; ++k) {
      for (std::size_t i = size; i-- > 0;) {
        const auto left = static_cast<std::size_t>(trees.left[first + i]);
        const double share = left == 0 ? 0.0 : forest.left_share(first + left);
        mean[i] = left == 0 ? trees.value[(first + i) * trees.width + k]
                            : share * mean[left] + (1 - share) * mean[left + 1];
      }
      expected[forest.first_output(t) + k] += mean[0];
    }
  }
}

void shap_values(const Columns& table, const ShapForest& forest, Team& team, double* values) {
  const std::size_t n_outputs = forest.n_outputs, row_size = forest.n_features * n_outputs;
  std::fill_n(values, table.n_rows * row_size, 0.0);
  for_blocks(table, forest, team, false,
             [&](const BlockSums& sums, std::size_t in_block, std::size_t row) {
               for (std::size_t c = 0; c < forest.columns.size(); ++c)
                 for (std::size_t k = 0; k < n_outputs; ++k)
                   values[row * row_size + forest.columns[c].feature * n_outputs + k] =
                       sums.phi(k, c, in_block);
             });
}

void shap_interactions(const Columns& table, const ShapForest& forest, Team& team,
                       double* interactions) {
  const std::size_t n_features = forest.n_features, n_outputs = forest.n_outputs;
  const std::size_t row_size = n_features * n_features * n_outputs;
  std::fill_n(interactions, table.n_rows * row_size, 0.0);
  for_blocks(table, forest, team, true,
             [&](const BlockSums& sums, std::size_t in_block, std::size_t row) {
               double* out = interactions + row * row_size;
               const auto at = [&](std::size_t a, std::size_t b, std::size_t k) -> double& {
                 const std::size_t from = forest.columns[a].feature, to = forest.columns[b].feature;
                 return out[(from * n_features + to) * n_outputs + k];
               };
               for (std::size_t k = 0; k < n_outputs; ++k) {
                 for (std::size_t a = 0; a < forest.columns.size(); ++a) {
                   double others = 0;
                   for (std::size_t b = 0; b < forest.columns.size(); ++b) {
                     if (a == b) continue;
                     const double half = sums.pair(k, ShapForest::pair(a, b), in_block) / 2;
                     at(a, b, k) = half;
                     others += half;
                   }
                   at(a, a, k) = sums.phi(k, a, in_block) - others;
                 }
               }
             });
}

std::size_t shap_cells(const ShapForest& forest) {
  return 4 * forest.trees.left.size() * forest.trees.width;
}

}  // namespace arboost
