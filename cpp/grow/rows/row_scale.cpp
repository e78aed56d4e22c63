// Gradients -> scaled integers in the elements: the scale of a tree, and its rows. About 1 ns a
// row; parallel.
#include <algorithm>
#include <bit>  // bit_width
#include <cmath>
#include <mutex>

#include "base/random.h"  // short_hash
#include "grow/rows/row_partition.h"
#include "grow/rows/wide_rounding.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;

// From this many rows on, elements carry pairs of 15 bits. Smaller data stay in the cache, where
// wide pairs cost nothing.
constexpr std::size_t narrow_rows = 32768;

std::int32_t rounded(double x) {
  return static_cast<std::int32_t>(x + (x < 0 ? -0.5 : 0.5));
}

// Number of bits that numbers grow by when multiplied by a factor of at least 1.
int bits_of(float factor) {
  int exponent = 0;
  const float mantissa = std::frexp(factor, &exponent);
  return mantissa == 0.5f ? exponent - 1 : exponent;
}

}  // namespace

void RowPartition::prepare(const Gradients& gradients, std::size_t output, const Sample* sample,
                           std::uint32_t seed, Team& team) {
  if (codes_.sparse.size() > 0) make_marks(static_cast<std::size_t>(team.size()));
  weights_ = sample == nullptr ? nullptr : sample->weights_or_null();
  rows_ = sample == nullptr ? training_rows()
                            : TreeRows{sample->size, sample->positions.data(), table_rows()};
  is_sample_ = sample != nullptr;
  // The next sample may be a little larger.
  for (auto& elements : space_.elements)
    make_room(elements, std::min(n_training_, rows_.n + rows_.n / 64));
  pairs_ = pairs_of_rows(gradients, output, team);
  add_workers(pairs_);
  const TreePairs& pairs = pairs_;
  const auto n = static_cast<std::int64_t>(all_rows_);
  const int g_shift = shift_for(pairs.sum_abs_g[0], 16), h_shift = shift_for(pairs.sum_h[0], 16);
  const bool narrow = !always_wide_ && sums_.outputs == 1 && all_rows_ >= narrow_rows &&
                      (pairs.sum_abs_g[0] >> g_shift) >= fine_mean_units * n &&
                      (pairs.sum_h[0] >> h_shift) >= fine_mean_units * n;
  if (narrow)
    prepare_narrow(pairs, g_shift, h_shift, seed, team);
  else
    prepare_wide(pairs, seed, team);
}

// The smallest shift, at least `lowest`, after which a sum over the rows fits sum_bits_ even if
// each number was rounded up.
int RowPartition::shift_for(std::int64_t sum, int lowest) const {
  int shift = lowest;
  while (shift < 30 &&
         (sum >> shift) + static_cast<std::int64_t>(all_rows_) >= (std::int64_t{1} << sum_bits_))
    ++shift;
  return shift;
}

// Sums and numbers of rows, over all workers: the scale of the tree is chosen from them.
void RowPartition::add_workers(TreePairs& pairs) {
  workers_.sum(pairs.sum_abs_g);
  workers_.sum(pairs.sum_h);
  const std::int64_t own[2] = {static_cast<std::int64_t>(n_training_),
                               static_cast<std::int64_t>(rows_.n)};
  all_rows_ = 0;
  first_position_ = 0;
  std::size_t rank = 0;
  for (const std::vector<std::int64_t>& counts : workers_.gather(own)) {
    if (rank++ < workers_.rank()) first_position_ += static_cast<std::uint32_t>(counts[0]);
    all_rows_ += static_cast<std::size_t>(counts[1]);
  }
}

void RowPartition::use_all(const Gradients& gradients, std::size_t output, Team& team) {
  weights_ = nullptr;
  rows_ = training_rows();
  pairs_ = pairs_of_rows(gradients, output, team);
}

TreePairs RowPartition::pairs_of_rows(const Gradients& gradients, std::size_t output, Team& team) {
  if (rows_.positions != nullptr) return gather(gradients, output, team);
  const auto first = static_cast<std::ptrdiff_t>(output), n = std::ptrdiff_t{sums_.outputs};
  const auto some = [=](const std::vector<std::int64_t>& sums) {
    return std::vector<std::int64_t>(sums.begin() + first, sums.begin() + first + n);
  };
  return {gradients.pairs.data() + output * gradients.output_stride(),
          gradients.row_stride(),
          gradients.output_stride(),
          gradients.g_exponent,
          gradients.h_exponent,
          some(gradients.sum_abs_g),
          some(gradients.sum_h)};
}

// The weighted pairs of the sample, contiguous. Weights could make them larger than 30 bits.
TreePairs RowPartition::gather(const Gradients& gradients, std::size_t output, Team& team) {
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  make_room(space_.pairs, rows_.n * outputs);
  FixedPair* gathered = space_.pairs.data();
  const FixedPair* from = gradients.pairs.data() + output * gradients.output_stride();
  // As many low bits are lost as the largest weight needs.
  float largest = 1;
  if (weights_ != nullptr && rows_.n > 0) largest = *std::max_element(weights_, weights_ + rows_.n);
  std::int64_t drop_of_all = bits_of(largest);
  workers_.max({&drop_of_all, 1});
  const int drop = static_cast<int>(drop_of_all);
  const double factor = std::ldexp(1.0, -drop);
  TreePairs pairs{gathered,
                  outputs,
                  1,
                  gradients.g_exponent - drop,
                  gradients.h_exponent - drop,
                  std::vector<std::int64_t>(outputs, 0),
                  std::vector<std::int64_t>(outputs, 0)};
  std::mutex mutex;
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    std::vector<std::int64_t> own_g(outputs, 0), own_h(outputs, 0);
    for (std::size_t i = begin; i < end; ++i) {
      const double scale = weights_ == nullptr ? 1.0 : double{weights_[i]} * factor;
      const FixedPair* row = from + rows_.position(i) * gradients.row_stride();
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair pair = row[k * gradients.output_stride()];
        const FixedPair scaled{rounded(pair.g * scale), rounded(pair.h * scale)};
        gathered[i * outputs + k] = scaled;
        own_g[k] += std::abs(scaled.g);
        own_h[k] += scaled.h;
      }
    }
    std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < outputs; ++k) {
      pairs.sum_abs_g[k] += own_g[k];
      pairs.sum_h[k] += own_h[k];
    }
  });
  return pairs;
}

void RowPartition::prepare_narrow(const TreePairs& pairs, int g_shift, int h_shift,
                                  std::uint32_t seed, Team& team) {
  const NarrowArgs args{pairs.pairs, rows_, g_shift, h_shift, seed, first_position_};
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    grow_kernels().quantise_narrow(args, begin, end, space_.elements[0].data());
  });
  sums_.wide = nullptr;
  set_scale(pairs, g_shift, h_shift);
}

void RowPartition::prepare_wide(const TreePairs& pairs, std::uint32_t seed, Team& team) {
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  const auto rounding_of = [&](const std::vector<std::int64_t>& sums) {
    const std::int64_t largest = *std::max_element(sums.begin(), sums.end());
    return WideRounding(largest, all_rows_, shift_for(largest, 0));
  };
  const WideRounding g_rounding = rounding_of(pairs.sum_abs_g);
  const WideRounding h_rounding = rounding_of(pairs.sum_h);
  const bool stochastic = g_rounding.stochastic() || h_rounding.stochastic();
  make_room(space_.wide, codes_.n_rows * outputs);
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const RowId row = rows_.row(i);
      space_.elements[0][i] = row;
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair pair = pairs.at(i, k);
        const std::uint32_t random = stochastic ? short_hash(first_position_ + rows_.position(i),
                                                             seed + static_cast<std::uint32_t>(k))
                                                : 0;
        space_.wide[row * outputs + k] =
            pack(g_rounding(pair.g, random & 0xffff), h_rounding(pair.h, random >> 16));
      }
    }
  });
  sums_.wide = space_.wide.data();
  set_scale(pairs, g_rounding.shift(), h_rounding.shift());
}

void RowPartition::set_scale(const TreePairs& pairs, int g_shift, int h_shift) {
  g_shift_ = g_shift;
  h_shift_ = h_shift;
  g_scale_ = std::ldexp(1.0, g_shift - pairs.g_exponent);
  h_scale_ = std::ldexp(1.0, h_shift - pairs.h_exponent);
}

TreeScale RowPartition::scale() const {
  double weight = 0;
  for (const std::int64_t h : pairs_.sum_h)
    weight +=
        std::ldexp(static_cast<double>(h), -pairs_.h_exponent) / static_cast<double>(sums_.outputs);
  return {.g_unit = g_scale_,
          .h_unit = h_scale_,
          .weight = weight,
          .n_rows = all_rows_,
          .counted = sums_.counted,
          .least_h = 1};
}

bool RowPartition::values_are_exact(const Gradients& gradients, std::size_t output) const {
  // Also before the weights of a sample took their bits.
  const int drop = gradients.g_exponent - pairs_.g_exponent;
  const FixedPair* unweighted = gradients.pairs.data() + output * gradients.output_stride();
  constexpr int coarse = 16;
  const int g_shift = std::max(g_shift_, coarse), h_shift = std::max(h_shift_, coarse);
  const auto lost = [](std::int64_t bits, int shift) {
    return bits & ((std::int64_t{1} << shift) - 1);
  };
  for (std::size_t begin = 0; begin < rows_.n; begin += chunk_rows) {
    const std::size_t end = std::min(begin + chunk_rows, rows_.n);
    std::int32_t g_bits = 0, h_bits = 0, all_g_bits = 0, all_h_bits = 0;
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t k = 0; k < static_cast<std::size_t>(sums_.outputs); ++k) {
        const FixedPair& from =
            unweighted[rows_.position(i) * gradients.row_stride() + k * gradients.output_stride()];
        g_bits |= pairs_.at(i, k).g;
        h_bits |= pairs_.at(i, k).h;
        all_g_bits |= from.g;
        all_h_bits |= from.h;
      }
    if (lost(g_bits, g_shift) != 0 || lost(h_bits, h_shift) != 0 ||
        lost(all_g_bits, g_shift + drop) != 0 || lost(all_h_bits, h_shift + drop) != 0)
      return false;
  }
  return true;
}

}  // namespace arboost
