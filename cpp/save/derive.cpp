// Only operations that round the same way on all machines, in a fixed order; and nothing that is
// not finite, because what is no number has many patterns of bits.
#include "save/derive.h"

#include <bit>  // bit_cast
#include <cmath>
#include <limits>
#include <stdexcept>  // invalid_argument
#include <vector>

#include "save/bits.h"

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

// Doubles in their order as integers, so that close ones are close.
constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

std::uint64_t ordered(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return bits & sign_bit ? ~bits : bits | sign_bit;
}

double from_ordered(std::uint64_t place) {
  return std::bit_cast<double>(place & sign_bit ? place ^ sign_bit : ~place);
}

// As the engine does it (grow/gain.h): the gain is then derived to the last bit.
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
    for (std::size_t k = 0; k < width; ++k)
      sums[i * width + k] = sum_of(shrunk(cover[i]), value[i * width + k]);
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

std::size_t count_splits(std::span<const std::uint8_t> is_split) {
  std::size_t n_splits = 0;
  for (const std::uint8_t split : is_split) n_splits += split != 0;
  return n_splits;
}

}  // namespace

void derive_splits(std::span<const std::int64_t> tree_start, std::span<const std::int32_t> left,
                   const NodeNumbers& numbers, const Shrinkage& shrinkage) {
  const auto n_nodes = static_cast<std::int64_t>(left.size());
  std::vector<double> sums;
  for (std::size_t t = 0; t + 1 < tree_start.size(); ++t) {
    const std::int64_t begin = tree_start[t], end = tree_start[t + 1];
    if (begin < 0 || begin > end || end > n_nodes)
      throw std::invalid_argument("trees outside the nodes");
    const auto first = static_cast<std::size_t>(begin);
    const Tree tree{left.subspan(first, static_cast<std::size_t>(end - begin)),
                    numbers.width,
                    numbers.cover + first,
                    numbers.value + first * numbers.width,
                    numbers.gain + first,
                    shrinkage};
    tree.derive(sums);
  }
}

void unpack_nodes(std::span<const std::uint8_t> is_split, std::span<const std::uint8_t> of_splits,
                  std::span<const std::uint8_t> of_leaves, std::uint64_t largest,
                  std::uint32_t* out) {
  const std::size_t n_splits = count_splits(is_split);
  const std::vector<std::uint64_t> splits = unpack_bits(of_splits, n_splits);
  const std::vector<std::uint64_t> leaves = unpack_bits(of_leaves, is_split.size() - n_splits);
  std::uint64_t all_below = 0;
  for (const std::uint64_t number : splits) all_below |= number > largest;
  for (const std::uint64_t number : leaves) all_below |= number > largest;
  if (all_below != 0) throw std::invalid_argument("numbers that are too large");
  const std::uint64_t* from[2] = {leaves.data(), splits.data()};
  for (const std::uint8_t split : is_split)
    *out++ = static_cast<std::uint32_t>(*from[split != 0]++);
}

void spread_leaves(std::span<const std::uint8_t> is_split, std::span<const double> of_leaves,
                   std::size_t width, double* out) {
  if (of_leaves.size() / width != is_split.size() - count_splits(is_split) ||
      of_leaves.size() % width != 0)
    throw std::invalid_argument("another number of leaves than the nodes have");
  const double* from = of_leaves.data();
  for (std::size_t i = 0; i < is_split.size(); ++i) {
    if (is_split[i] != 0) continue;
    for (std::size_t k = 0; k < width; ++k) out[i * width + k] = *from++;
  }
}

void move_splits(std::span<const std::uint8_t> is_split, std::span<const std::uint64_t> places,
                 std::size_t width, double* out) {
  if (places.size() / width != count_splits(is_split) || places.size() % width != 0)
    throw std::invalid_argument("another number of splits than the nodes have");
  const std::uint64_t* from = places.data();
  for (std::size_t i = 0; i < is_split.size(); ++i) {
    if (is_split[i] == 0) continue;
    for (std::size_t k = 0; k < width; ++k, ++from) {
      double& x = out[i * width + k];
      x = from_ordered(ordered(x) + ((*from >> 1) ^ (0 - (*from & 1))));
    }
  }
}

}  // namespace arboost
