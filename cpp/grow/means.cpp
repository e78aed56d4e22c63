// Sums of doubles in row order; medians by sorting. Single-threaded, so that the result depends on
// nothing else.
#include "grow/means.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grow/rows/row_leaves.h"

namespace arboost {
namespace {

// The rows of the last tree.
class LastTree {
 public:
  LastTree(const Grower& grower, std::span<const double> y, std::span<const double> weight,
           const Sample* sample, GrownTrees& trees)
      : width(trees.width),
        n_nodes(trees.n_nodes(trees.n_trees() - 1)),
        n_rows(grower.rows().n),
        left(trees.left.data() + trees.first(trees.n_trees() - 1), n_nodes),
        value(trees.values(trees.n_trees() - 1)),
        grower_(grower),
        y_(y),
        weight_(weight),
        count_(sample == nullptr ? nullptr : sample->weights_or_null()) {}

  std::size_t leaf(std::size_t i) const { return grower_.leaf_of(i); }
  double weight(std::size_t i) const {
    return (weight_.empty() ? 1.0 : weight_[grower_.rows().position(i)]) *
           (count_ == nullptr ? 1.0 : static_cast<double>(count_[i]));
  }
  double y(std::size_t i, std::size_t k) const {
    return y_[grower_.rows().position(i) * width + k];
  }

  std::size_t width, n_nodes, n_rows;
  std::span<const std::int32_t> left;
  double* value;  // [node][width]

 private:
  const Grower& grower_;
  std::span<const double> y_, weight_;
  const float* count_;
};

using Weighted = std::pair<double, double>;  // y and weight

double median_of(std::vector<Weighted>& values) {
  std::sort(values.begin(), values.end());
  double total = 0, sum = 0;
  for (const Weighted& weighted : values) total += weighted.second;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i].second;
    if (sum > total / 2) return values[i].first;
    if (sum == total / 2 && i + 1 < values.size())
      return values[i].first + (values[i + 1].first - values[i].first) / 2;
  }
  return values.empty() ? 0.0 : values.back().first;
}

}  // namespace

void set_means(const Grower& grower, std::span<const double> y, std::span<const double> weight,
               const Sample* sample, GrownTrees& trees) {
  const LastTree tree(grower, y, weight, sample, trees);
  const std::size_t n = tree.n_nodes, width = tree.width;
  double* value = tree.value;
  std::vector<double> total(n, 0);
  std::fill(value, value + n * width, 0.0);
  for (std::size_t i = 0; i < tree.n_rows; ++i) {
    const std::size_t leaf = tree.leaf(i);
    const double w = tree.weight(i);
    total[leaf] += w;
    for (std::size_t k = 0; k < width; ++k) value[leaf * width + k] += w * tree.y(i, k);
  }
  add_inner_sums(tree.left, 1, total);
  add_inner_sums(tree.left, width, value);
  for (std::size_t node = 0; node < n; ++node)
    for (std::size_t k = 0; k < width; ++k)
      value[node * width + k] = total[node] > 0 ? value[node * width + k] / total[node] : 0.0;
}

void set_covers(const Grower& grower, std::span<const double> weight, const Sample* sample,
                GrownTrees& trees) {
  const LastTree tree(grower, {}, weight, sample, trees);
  double* cover = trees.cover.data() + trees.first(trees.n_trees() - 1);
  std::fill_n(cover, tree.n_nodes, 0.0);
  for (std::size_t i = 0; i < tree.n_rows; ++i) cover[tree.leaf(i)] += tree.weight(i);
  add_inner_sums(tree.left, 1, cover);
}

void set_medians(const Grower& grower, std::span<const double> y, std::span<const double> weight,
                 const Sample* sample, GrownTrees& trees) {
  const LastTree tree(grower, y, weight, sample, trees);
  const std::size_t n = tree.n_nodes;
  // An order of the rows in which those of every node are contiguous, [begin, end). Counts are
  // summed from the last node to the root, ranges assigned from the root down, left child first.
  std::vector<std::size_t> size(n, 0), begin(n, 0);
  for (std::size_t i = 0; i < tree.n_rows; ++i) ++size[tree.leaf(i)];
  add_inner_sums(tree.left, 1, size);
  for (std::size_t node = 0; node < n; ++node) {
    const auto child = static_cast<std::size_t>(tree.left[node]);
    if (child == 0) continue;
    begin[child] = begin[node];
    begin[child + 1] = begin[node] + size[child];
  }
  std::vector<std::size_t> next = begin, rows(tree.n_rows);
  for (std::size_t i = 0; i < tree.n_rows; ++i) rows[next[tree.leaf(i)]++] = i;
  std::vector<Weighted> values;
  for (std::size_t node = 0; node < n; ++node)
    for (std::size_t k = 0; k < tree.width; ++k) {
      values.clear();
      for (std::size_t j = begin[node]; j < begin[node] + size[node]; ++j)
        values.emplace_back(tree.y(rows[j], k), tree.weight(rows[j]));
      tree.value[node * tree.width + k] = median_of(values);
    }
}

}  // namespace arboost
