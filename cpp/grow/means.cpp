#include "grow/means.h"

#include <algorithm>
#include <vector>

namespace arboost {

void set_means(const Grower& grower, std::span<const double> y, std::span<const double> weight,
               const Sample* sample, GrownTrees& trees) {
  const std::size_t width = trees.width, tree = trees.n_trees() - 1, n = trees.n_nodes(tree);
  const std::int32_t* left = trees.left.data() + trees.first(tree);
  const float* count = sample == nullptr ? nullptr : sample->weights_or_null();
  const TreeRows& rows = grower.rows();
  std::vector<double> total(n, 0);
  double* value = trees.values(tree);
  std::fill(value, value + n * width, 0.0);
  for (std::size_t i = 0; i < rows.n; ++i) {
    const std::size_t position = rows.position(i), leaf = grower.leaf_of(i);
    const double w = (weight.empty() ? 1.0 : weight[position]) *
                     (count == nullptr ? 1.0 : static_cast<double>(count[i]));
    total[leaf] += w;
    for (std::size_t k = 0; k < width; ++k) value[leaf * width + k] += w * y[position * width + k];
  }
  // Children come after their parents: from the back, sums are complete when they are reached.
  for (std::size_t node = n; node-- > 0;) {
    if (left[node] == 0) continue;
    const auto child = static_cast<std::size_t>(left[node]);
    total[node] = total[child] + total[child + 1];
    for (std::size_t k = 0; k < width; ++k)
      value[node * width + k] = value[child * width + k] + value[(child + 1) * width + k];
  }
  for (std::size_t node = 0; node < n; ++node)
    for (std::size_t k = 0; k < width; ++k)
      value[node * width + k] = total[node] > 0 ? value[node * width + k] / total[node] : 0.0;
}

}  // namespace arboost
