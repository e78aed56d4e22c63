// Look-up table of one column's edges: value -> code in a few instructions, without branches.
//
// A monotone function f maps every number to one of up to 4096 buckets:
//
//   bucket   | 0 |  1  | 2 | 3 | ...
//   edges       ^    ^ ^         ^         first[b] = number of edges in buckets before b
//
// Edges in earlier buckets than that of x are below x, edges in later buckets above x, however f
// rounds. A binary search among the edges of the bucket remains, with a fixed number of steps. f is
// linear in x or in the bits of x (about its logarithm), whichever spreads the edges better.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "bin/edges/keys.h"

namespace arboost {

template <class Code>
class Lookup {
 public:
  // `n_values`: expected number of look-ups; few of them do not pay for larger tables.
  Lookup(std::span<const double> edges, std::size_t n_values)
      : edges_(edges.begin(), edges.end()), n_edges_(edges.size()) {
    const std::size_t most = std::bit_ceil(std::min<std::size_t>(4 * n_edges_ + 1, 1u << 16));
    const std::size_t n_buckets = std::min(most, std::bit_floor(4 * n_values + 1));
    build(Scale::linear, n_buckets);
    if (steps_ > 2 && n_buckets > 1 && n_values > 4 * n_buckets) {
      improve(Scale::linear, 4 * n_buckets);
      improve(Scale::bits, 4 * n_buckets);
    }
    // Searches read past the last edge: pad with infinity.
    edges_.resize(n_edges_ + (std::size_t{1} << steps_), std::numeric_limits<double>::infinity());
  }

  // The code of one value that is not NaN.
  std::size_t code(double x) const {
    std::size_t bin = first_[scale_ == Scale::linear ? linear_bucket(x) : bits_bucket(x)];
    for (int step = steps_ - 1; step >= 0; --step) {
      const std::size_t half = std::size_t{1} << step;
      bin += edges_[bin + half - 1] < x ? half : 0;
    }
    return bin;
  }

  // Codes of n values; n_edges + 1 for NaN. Returns whether there was one.
  bool codes(const double* values, std::size_t n, std::uint32_t* buckets, Code* out) const {
    if (scale_ == Scale::linear) {
      for (std::size_t i = 0; i < n; ++i) buckets[i] = linear_bucket(values[i]);
    } else {
      for (std::size_t i = 0; i < n; ++i) buckets[i] = bits_bucket(values[i]);
    }
    constexpr decltype(&Lookup::search<0>) searches[] = {&Lookup::search<0>, &Lookup::search<1>,
                                                         &Lookup::search<2>, &Lookup::search<3>,
                                                         &Lookup::search<-1>};
    (this->*searches[std::min(steps_, 4)])(values, n, buckets, out);
    const auto missing_code = static_cast<Code>(n_edges_ + 1);
    if (!any_nan(values, n)) return false;
    for (std::size_t i = 0; i < n; ++i)
      if (std::isnan(values[i])) out[i] = missing_code;
    return true;
  }

 private:
  enum class Scale { linear, bits };

  // By the bits, without a branch: compilers turn this into vector code, but not comparisons.
  static bool any_nan(const double* values, std::size_t n) {
    constexpr std::uint64_t magnitude = ~std::uint64_t{0} >> 1;
    constexpr std::uint64_t bump = (std::uint64_t{1} << 52) - 1;  // only NaN overflows to bit 63
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < n; ++i)
      all |= (std::bit_cast<std::uint64_t>(values[i]) & magnitude) + bump;
    return all >> 63 != 0;
  }

  // NaN and everything below the first edge go to bucket 0. Overflow to infinity, or a factor of 0,
  // only makes the buckets worse.
  std::uint32_t linear_bucket(double x) const {
    double t = (x - low_) * factor_;
    t = t > 0 ? t : 0;
    t = t < top_ ? t : top_;
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(t));
  }
  std::uint32_t bits_bucket(double x) const {
    // Rounding to float keeps the order; a double would spend its buckets on tiny exponents.
    const std::uint32_t key = key_of(static_cast<float>(x));
    const std::uint32_t inside = std::clamp(key, low_key_, high_key_);
    return (inside - low_key_) >> shift_;
  }

  template <int fixed_steps>
  void search(const double* values, std::size_t n, const std::uint32_t* buckets, Code* out) const {
    const int steps = fixed_steps >= 0 ? fixed_steps : steps_;
    const double* edges = edges_.data();
    const Code* first = first_.data();
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t code = first[buckets[i]];
      for (int step = steps - 1; step >= 0; --step) {
        const std::size_t half = std::size_t{1} << step;
        code += edges[code + half - 1] < values[i] ? half : 0;
      }
      out[i] = static_cast<Code>(code);
    }
  }

  void build(Scale scale, std::size_t n_buckets) {
    scale_ = scale;
    if (n_edges_ == 0) n_buckets = 1;
    if (n_edges_ > 0) {
      low_ = edges_.front();
      factor_ = static_cast<double>(n_buckets) / (edges_[n_edges_ - 1] - low_);
      top_ = static_cast<double>(n_buckets - 1);
      low_key_ = key_of(static_cast<float>(low_));
      high_key_ = key_of(static_cast<float>(edges_[n_edges_ - 1]));
      // n_buckets is a power of two, and above 1 wherever bits are used: the shift is below 32.
      const auto spare_bits = static_cast<int>(std::bit_width(high_key_ - low_key_)) -
                              static_cast<int>(std::bit_width(n_buckets)) + 1;
      shift_ = std::max(0, spare_bits);
    }
    std::vector<std::uint32_t> count(n_buckets + 1);
    for (std::size_t e = 0; e < n_edges_; ++e)
      ++count[(scale == Scale::linear ? linear_bucket(edges_[e]) : bits_bucket(edges_[e])) + 1];
    const std::uint32_t most = *std::max_element(count.begin(), count.end());
    steps_ = static_cast<int>(std::bit_width(most));
    first_.resize(n_buckets);
    std::uint32_t before = 0;
    for (std::size_t b = 0; b < n_buckets; ++b) {
      before += count[b];
      first_[b] = static_cast<Code>(before);
    }
  }

  // Keeps the other scale where it saves steps.
  void improve(Scale scale, std::size_t n_buckets) {
    Lookup other = *this;
    other.build(scale, n_buckets);
    if (other.steps_ < steps_) *this = std::move(other);
  }

  std::vector<double> edges_;
  std::size_t n_edges_;
  std::vector<Code> first_;
  Scale scale_ = Scale::linear;
  int steps_ = 0;
  double low_ = 0, factor_ = 0, top_ = 0;
  std::uint32_t low_key_ = 0, high_key_ = 0;
  int shift_ = 0;
};

}  // namespace arboost
