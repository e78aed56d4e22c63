// Leaves -> derived numbers of the splits. Only operations that round the same way on all machines,
// in a fixed order, on finite numbers only, because NaN has many bit patterns. Linear in nodes;
// single-threaded.
#include "save/derive.h"

#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument

namespace arboost {
namespace {

double finite(double x) {
  return std::abs(x) <= std::numeric_limits<double>::max() ? x : 0.0;
}

// Restores integer sums from rounded means.
double whole_sum(double cover, double mean) {
  const double sum = cover * mean, whole = std::nearbyint(sum);
  return finite(std::abs(sum - whole) < 1e-6 ? whole : sum);
}

double score(double sum, double cover) {
  return sum * sum / cover;
}

// The same formula as in growth (grow/search/gain.h), so that gains are derived to the last bit.
double both_scores(double left, double left_cover, double right, double right_cover) {
  return (left * left * right_cover + right * right * left_cover) / (left_cover * right_cover);
}

struct Tree {
  std::span<const std::int32_t> left;
  std::size_t width;
  double *cover, *value, *gain;
  Shrinkage shrinkage;

  void derive(std::vector<double>& sums) const {
    sums.resize(left.size() * width);
    for (std::size_t i = left.size(); i-- > 0;)
      left[i] == 0 ? sum_leaf(i, sums.data()) : derive_split(i, sums.data());
  }

 private:
  double shrunk(double h) const { return h + shrinkage.reg_lambda; }

  void sum_leaf(std::size_t i, double* sums) const {
    const double h = shrunk(cover[i]);
    for (std::size_t k = 0; k < width; ++k) {
      const double mean = value[i * width + k];
      sums[i * width + k] = shrinkage.whole_sums ? whole_sum(h, mean) : finite(h * mean);
    }
  }

  void derive_split(std::size_t i, double* sums) const {
    const auto l = static_cast<std::size_t>(left[i]), r = l + 1;
    if (left[i] < 0 || l <= i || r >= left.size())
      throw std::invalid_argument("a child outside its tree");
    cover[i] = finite(cover[l] + cover[r]);
    double score_after = 0, score_before = 0;
    for (std::size_t k = 0; k < width; ++k) {
      const double left_sum = sums[l * width + k], right_sum = sums[r * width + k];
      const double sum = finite(left_sum + right_sum);
      sums[i * width + k] = sum;
      value[i * width + k] = finite(sum / shrunk(cover[i]));
      score_after += both_scores(left_sum, shrunk(cover[l]), right_sum, shrunk(cover[r]));
      score_before += score(sum, shrunk(cover[i]));
    }
    gain[i] = finite((score_after - score_before) * shrinkage.gain_factor);
  }
};

}  // namespace

void derive_tree(std::span<const std::int32_t> left, const NodeNumbers& numbers,
                 const Shrinkage& shrinkage, std::vector<double>& sums) {
  const Tree tree{left, numbers.width, numbers.cover, numbers.value, numbers.gain, shrinkage};
  tree.derive(sums);
}

void derive_splits(std::span<const std::int64_t> tree_start, std::span<const std::int32_t> left,
                   const NodeNumbers& numbers, const Shrinkage& shrinkage) {
  const auto n_nodes = static_cast<std::int64_t>(left.size());
  std::vector<double> sums;
  for (std::size_t t = 0; t + 1 < tree_start.size(); ++t) {
    const std::int64_t begin = tree_start[t], end = tree_start[t + 1];
    if (begin < 0 || begin > end || end > n_nodes)
      throw std::invalid_argument("trees outside the nodes");
    const auto first = static_cast<std::size_t>(begin);
    derive_tree(left.subspan(first, static_cast<std::size_t>(end - begin)),
                {.width = numbers.width,
                 .cover = numbers.cover + first,
                 .value = numbers.value + first * numbers.width,
                 .gain = numbers.gain + first},
                shrinkage, sums);
  }
}

}  // namespace arboost
