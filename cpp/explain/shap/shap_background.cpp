// Trees with few features on a path use patterns, whose cost is the sum of those of the rows and of
// the background rows; all other trees, and small tables, use pairs of rows, whose cost is the
// product. The choice depends only on the tree and the sizes of both tables. Parallel over trees,
// or over blocks of rows.
#include <algorithm>
#include <memory>
#include <vector>

#include "explain/shap/shap.h"
#include "explain/shap/shap_pairs.h"
#include "explain/shap/shap_patterns.h"

namespace arboost {
namespace {

constexpr std::size_t rows_at_once = 256, few_rows = 8;
constexpr std::size_t most_numbers = std::size_t{1} << 23;  // of tables at a time

using Patterns = std::unique_ptr<ShapPatterns>;  // none for a tree that goes by pairs

class Background {
 public:
  Background(const Columns& table, const Columns& background, const ShapForest& forest, Team& team,
             double* values)
      : table_(table), background_(background), forest_(forest), team_(team), values_(values) {}

  void run() {
    std::fill_n(values_, table_.n_rows * forest_.n_features * forest_.n_outputs, 0.0);
    if (table_.n_rows == 0 || forest_.columns.empty()) return;
    std::vector<std::size_t> by_pairs;
    std::size_t numbers = 0;
    for (std::size_t t = 0; t < forest_.n_trees(); ++t) {
      auto patterns = std::make_unique<ShapPatterns>(forest_, t);
      if (!is_worth(*patterns, t)) {
        by_pairs.push_back(t);
        continue;
      }
      numbers += patterns->n_numbers();
      ready_.push_back(std::move(patterns));
      if (numbers > most_numbers) {
        add_patterns();
        numbers = 0;
      }
    }
    add_patterns();
    add_pairs(by_pairs);
  }

 private:
  bool is_worth(const ShapPatterns& patterns, std::size_t tree) const {
    if (!patterns.fits()) return false;
    const auto rows = static_cast<double>(table_.n_rows);
    const auto others = static_cast<double>(background_.n_rows);
    const auto nodes = static_cast<double>(forest_.first_node(tree + 1) - forest_.first_node(tree));
    const double by_pair = std::min(nodes, 32.0) * 3;
    return patterns.table_cost() + patterns.row_cost() * (rows + others) < by_pair * rows * others;
  }

  // Calls work(block, n_rows) for the background, block by block.
  template <class Work>
  void for_background(const Work& work) const {
    ShapBlock block(background_, forest_.columns, std::min(rows_at_once, background_.n_rows));
    for (std::size_t at = 0; at < background_.n_rows; at += rows_at_once) {
      const std::size_t end = std::min(background_.n_rows, at + rows_at_once);
      block.read(at, end);
      work(block, end - at);
    }
  }

  // Calls work(block, n_rows, phi) for all rows, in parallel, and adds phi to the results.
  template <class Work>
  void for_rows(std::size_t at_once, const Work& work) {
    const std::size_t n_columns = forest_.columns.size(), n_outputs = forest_.n_outputs;
    const auto members = static_cast<std::size_t>(team_.size());
    const std::size_t share = (table_.n_rows + 2 * members - 1) / (2 * members);
    const std::size_t rows = std::min(at_once, share);
    team_.for_chunks(0, table_.n_rows, rows, [&](std::size_t begin, std::size_t end, int) {
      ShapBlock block(table_, forest_.columns, end - begin);
      block.read(begin, end);
      std::vector<double> phi(n_outputs * n_columns * block.stride(), 0.0);
      work(block, end - begin, phi.data());
      for (std::size_t row = begin; row < end; ++row)
        for (std::size_t c = 0; c < n_columns; ++c)
          for (std::size_t k = 0; k < n_outputs; ++k) {
            const std::size_t feature = row * forest_.n_features + forest_.columns[c].feature;
            values_[feature * n_outputs + k] +=
                phi[(k * n_columns + c) * block.stride() + row - begin];
          }
    });
  }

  void add_patterns() {
    if (ready_.empty()) return;
    team_.for_chunks(0, ready_.size(), 1, [&](std::size_t begin, std::size_t end, int) {
      for (std::size_t i = begin; i < end; ++i) {
        ready_[i]->start();
        for_background([&](const ShapBlock& block, std::size_t n) { ready_[i]->count(block, n); });
        ready_[i]->finish(background_.n_rows);
      }
    });
    for_rows(rows_at_once, [&](const ShapBlock& block, std::size_t n_rows, double* phi) {
      for (const Patterns& patterns : ready_) patterns->add(block, n_rows, phi);
    });
    ready_.clear();
  }

  // Each block of the background is paired with all rows, a few at a time, with Ctrl-C checks in
  // between.
  void add_pairs(const std::vector<std::size_t>& trees) {
    if (trees.empty()) return;
    const double scale = 1 / static_cast<double>(background_.n_rows);
    for_background([&](const ShapBlock& others, std::size_t n_others) {
      for_rows(few_rows, [&](const ShapBlock& block, std::size_t n_rows, double* phi) {
        ShapPairs pairs(forest_);
        for (const std::size_t t : trees)
          for (std::size_t k = 0; k < forest_.trees.width; ++k) {
            const std::size_t output = forest_.first_output(t) + k;
            double* to = phi + output * forest_.columns.size() * block.stride();
            for (std::size_t row = 0; row < n_rows; ++row)
              for (std::size_t other = 0; other < n_others; ++other)
                pairs.add(t, k, {block, row}, {others, other}, scale, to + row, block.stride());
          }
      });
    });
  }

  const Columns& table_;
  const Columns& background_;
  const ShapForest& forest_;
  Team& team_;
  double* values_;
  std::vector<Patterns> ready_;  // to be filled, in the order of the trees
};

}  // namespace

void shap_against(const Columns& table, const Columns& background, const ShapForest& forest,
                  Team& team, double* values) {
  Background(table, background, forest, team, values).run();
}

}  // namespace arboost
