// Cost: about 3 ns a step; the number of paths is that of the leaves that a mixture of both rows
// can reach. One object a thread.
#include "explain/shap/shap_pairs.h"

namespace arboost {

bool ShapPairs::goes_left(std::size_t node, const Row& row) const {
  const Forest& trees = forest_.trees;
  const double x = row.value(forest_.column[node]);
  if (trees.level_set[node] >= 0)
    return holds(forest_.sets[static_cast<std::size_t>(trees.level_set[node])],
                 static_cast<std::uint32_t>(x));
  return trees.default_left[node] ? !(x > trees.threshold[node]) : x <= trees.threshold[node];
}

// Descends from a node to a leaf, following the row wherever the two rows differ.
std::size_t ShapPairs::descend(std::size_t node, std::size_t first, const Row& row,
                               const Row& background) {
  while (forest_.trees.left[node] != 0) {
    const std::size_t column = forest_.column[node];
    const std::size_t left = first + static_cast<std::size_t>(forest_.trees.left[node]);
    bool goes = goes_left(node, taken_[column] == From::background ? background : row);
    if (taken_[column] == From::none && goes != goes_left(node, background)) {
      forks_.push_back({column, left + (goes ? 1 : 0), weight_, 0, 0, false});
      taken_[column] = From::row;
      weight_ *= static_cast<double>(n_row_ + 1) / static_cast<double>(n_row_ + n_background_ + 1);
      ++n_row_;
    }
    node = left + (goes ? 0 : 1);
  }
  return node;
}

void ShapPairs::add(std::size_t tree, std::size_t k, const Row& row, const Row& background,
                    double scale, double* phi, std::size_t stride) {
  const Forest& trees = forest_.trees;
  const std::size_t first = forest_.first_node(tree);
  weight_ = scale;
  std::size_t node = first;
  while (true) {
    const std::size_t leaf = descend(node, first, row, background);
    const double value = trees.value[leaf * trees.width + k] * weight_;
    double row_sum = n_row_ > 0 ? value / static_cast<double>(n_row_) : 0;
    double background_sum = n_background_ > 0 ? value / static_cast<double>(n_background_) : 0;
    // Forks whose second path ends here are done.
    while (!forks_.empty() && forks_.back().is_second) {
      const Fork fork = forks_.back();
      forks_.pop_back();
      phi[fork.column * stride] -= background_sum;
      row_sum += fork.row_sum;
      background_sum += fork.background_sum;
      taken_[fork.column] = From::none;
      --n_background_;
    }
    if (forks_.empty()) return;
    Fork& fork = forks_.back();
    phi[fork.column * stride] += row_sum;
    fork.row_sum = row_sum;
    fork.background_sum = background_sum;
    fork.is_second = true;
    taken_[fork.column] = From::background;
    --n_row_;
    ++n_background_;
    weight_ = fork.weight * static_cast<double>(n_background_) /
              static_cast<double>(n_row_ + n_background_);
    node = fork.other;
  }
}

}  // namespace arboost
