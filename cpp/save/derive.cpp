// Only operations that round the same way on all machines, in a fixed order; and nothing that is
// not finite, because what is no number has many patterns of bits.
#include "save/derive.h"

#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <vector>

namespace arboost {
namespace {

double finite(double x) {
  return std::abs(x) <= std::numeric_limits<double>::max() ? x : 0.0;
}

// Sums of whole numbers come back as such, though their mean was rounded.
double sum_of(double cover, double mean) {
  const double sum = cover * mean, whole = std::nearbyint(sum);
  return finite(std::abs(sum - whole) < 1e-6 ? whole : sum);
}

double score(double sum, double cover) {
  return sum * sum / cover;
}

// As the engine does it (grow/gain.h): the gain is then derived to the last bit.
double both_scores(double left, double left_cover, double right, double right_cover) {
  return (left * left * right_cover + right * right * left_cover) / (left_cover * right_cover);
}

struct Tree {
  std::span<const std::int32_t> left;
  std::size_t width;
  double *cover, *value, *gain;

  void derive(std::vector<double>& sums) const {
    sums.resize(left.size() * width);
    for (std::size_t i = left.size(); i-- > 0;)
      left[i] == 0 ? sum_leaf(i, sums.data()) : derive_split(i, sums.data());
  }

 private:
  void sum_leaf(std::size_t i, double* sums) const {
    for (std::size_t k = 0; k < width; ++k)
      sums[i * width + k] = sum_of(cover[i], value[i * width + k]);
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
      value[i * width + k] = finite(sum / cover[i]);
      score_after += both_scores(left_sum, cover[l], right_sum, cover[r]);
      score_before += score(sum, cover[i]);
    }
    gain[i] = finite(score_after - score_before);
  }
};

}  // namespace

void derive_splits(std::span<const std::int64_t> tree_start, std::span<const std::int32_t> left,
                   const NodeNumbers& numbers) {
  const auto n_nodes = static_cast<std::int64_t>(left.size());
  std::vector<double> sums;
  for (std::size_t t = 0; t + 1 < tree_start.size(); ++t) {
    const std::int64_t begin = tree_start[t], end = tree_start[t + 1];
    if (begin < 0 || begin > end || end > n_nodes)
      throw std::invalid_argument("trees outside the nodes");
    const auto first = static_cast<std::size_t>(begin);
    const Tree tree{left.subspan(first, static_cast<std::size_t>(end - begin)), numbers.width,
                    numbers.cover + first, numbers.value + first * numbers.width,
                    numbers.gain + first};
    tree.derive(sums);
  }
}

void merge_words(std::span<const std::uint8_t> is_split, std::span<const std::uint64_t> of_splits,
                 std::span<const std::uint64_t> of_leaves, std::size_t width, std::uint64_t* out) {
  std::size_t n_splits = 0;
  for (const std::uint8_t split : is_split) n_splits += split != 0;
  if (of_splits.size() != n_splits * width ||
      of_leaves.size() != (is_split.size() - n_splits) * width)
    throw std::invalid_argument("other numbers of splits and leaves than nodes");
  const std::uint64_t* from[2] = {of_leaves.data(), of_splits.data()};
  for (const std::uint8_t split : is_split) {
    const std::uint64_t*& next = from[split != 0];
    for (std::size_t k = 0; k < width; ++k) *out++ = *next++;
  }
}

}  // namespace arboost
