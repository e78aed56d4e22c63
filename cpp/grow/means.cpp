// Sums of doubles in row order; medians by sorting. Single-threaded, so that the result depends on
// nothing else.
#include "grow/means.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grow/rows/row_leaves.h"

namespace arboost {
namespace {

// The last tree and its rows.
class LastTree {
 public:
  LastTree(Grower& grower, const LeafTarget& target, const Sample* sample, GrownTrees& trees)
      : width(trees.width),
        n_nodes(trees.n_nodes(trees.n_trees() - 1)),
        n_rows(grower.rows().n),
        left(trees.left.data() + trees.first(trees.n_trees() - 1), n_nodes),
        value(trees.values(trees.n_trees() - 1)),
        cover(trees.cover.data() + trees.first(trees.n_trees() - 1)),
        grower_(grower),
        target_(target),
        count_(sample == nullptr ? nullptr : sample->weights_or_null()) {}

  std::size_t leaf(std::size_t i) const { return grower_.leaf_of(i); }
  double weight(std::size_t i) const {
    return (target_.weight.empty() ? 1.0 : target_.weight[grower_.rows().position(i)]) *
           (count_ == nullptr ? 1.0 : static_cast<double>(count_[i]));
  }
  double y(std::size_t i, std::size_t k) const {
    return target_.y[grower_.rows().position(i) * width + k];
  }
  // Sums [node][weight, weighted y ...] over the rows of each node.
  std::vector<double> sums() const;
  void set_covers(const std::vector<double>& sums) const {
    for (std::size_t node = 0; node < n_nodes; ++node) cover[node] = sums[node * (1 + width)];
  }

  std::size_t width, n_nodes, n_rows;
  std::span<const std::int32_t> left;
  double *value, *cover;  // [node][width], [node]

 private:
  Grower& grower_;
  const LeafTarget& target_;
  const float* count_;
};

std::vector<double> LastTree::sums() const {
  std::vector<double> sums = grower_.target_sums(target_);
  if (sums.empty()) {
    sums.resize(n_nodes * (1 + width), 0);
    for (std::size_t i = 0; i < n_rows; ++i) {
      double* sum = sums.data() + leaf(i) * (1 + width);
      const double w = weight(i);
      sum[0] += w;
      for (std::size_t k = 0; k < width; ++k) sum[1 + k] += w * y(i, k);
    }
  }
  add_inner_sums(left, 1 + width, sums);
  return sums;
}

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

void set_means(Grower& grower, const LeafTarget& target, const Sample* sample, bool sets_covers,
               GrownTrees& trees) {
  const LastTree tree(grower, target, sample, trees);
  const std::size_t width = tree.width;
  const std::vector<double> sums = tree.sums();
  for (std::size_t node = 0; node < tree.n_nodes; ++node) {
    const double* sum = sums.data() + node * (1 + width);
    for (std::size_t k = 0; k < width; ++k)
      tree.value[node * width + k] = sum[0] > 0 ? sum[1 + k] / sum[0] : 0.0;
  }
  if (sets_covers) tree.set_covers(sums);
}

void set_medians(Grower& grower, const LeafTarget& target, const Sample* sample, bool sets_covers,
                 GrownTrees& trees) {
  const LastTree tree(grower, target, sample, trees);
  if (sets_covers) tree.set_covers(tree.sums());
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
