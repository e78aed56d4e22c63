// Gradients -> scaled integers in the elements: the scale of a tree, and its rows. About 1 ns a
// row; parallel.
#include <algorithm>
#include <bit>  // bit_cast
#include <cmath>
#include <mutex>

#include "base/random.h"  // short_hash
#include "grow/rows/row_partition.h"
#include "grow/rows/tree_scaling.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;
constexpr std::size_t block_rows = 64;  // whose pairs of all outputs stay in the cache

// At least 1, also where all weights are (null). Bits of floats above 0 have their order, and are
// compared in vectors.
float largest_weight(const float* weights, std::size_t n, Team& team) {
  std::int32_t largest = std::bit_cast<std::int32_t>(1.0f);
  if (weights == nullptr) return 1;
  std::mutex mutex;
  team.for_chunks(0, n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    std::int32_t chunk_largest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const auto bits = std::bit_cast<std::int32_t>(weights[i]);
      chunk_largest = bits > chunk_largest ? bits : chunk_largest;
    }
    std::lock_guard lock(mutex);
    largest = std::max(largest, chunk_largest);
  });
  return std::bit_cast<float>(largest);
}

}  // namespace

void RowPartition::prepare(const Gradients& gradients, std::size_t output, const Sample* sample,
                           std::uint32_t seed, bool may_be_narrow, Team& team) {
  if (codes_.sparse.size() > 0) make_marks(static_cast<std::size_t>(team.size()));
  weights_ = sample == nullptr ? nullptr : sample->weights_or_null();
  rows_ = sample == nullptr ? training_rows()
                            : TreeRows{sample->size, sample->positions.data(), table_rows()};
  is_sample_ = sample != nullptr;
  // The next sample may be a little larger.
  const std::size_t size = std::min(n_training_, rows_.n + rows_.n / 64);
  make_room(space_.elements[0], size);
  if (!stretches_) make_room(space_.elements[1], size);
  const auto n_members = static_cast<std::size_t>(team.size());
  if (stretches_ && space_.buffers.size() < n_members) space_.buffers.resize(n_members);
  for (auto& buffer : space_.buffers) make_room(buffer, stretches_ ? stretches_->rows() : 0);
  pairs_ = pairs_of_rows(gradients, output, team);
  const TreeShare share =
      add_workers(pairs_.sum_abs_g, pairs_.sum_h, rows_.n, n_training_, workers_);
  all_rows_ = share.all_rows;
  first_position_ = share.first_position;
  const TreeScaling scaling = scaling_of(pairs_.sum_abs_g, pairs_.sum_h, all_rows_, sum_bits_,
                                         may_be_narrow && !always_wide_);
  if (scaling.narrow)
    prepare_narrow(scaling, seed, team);
  else
    prepare_wide(scaling, seed, team);
  set_scale(scaling);
}

TreeShare add_workers(std::vector<std::int64_t>& sum_abs_g, std::vector<std::int64_t>& sum_h,
                      std::size_t n_rows, std::size_t n_training, Collective& workers) {
  std::vector<std::int64_t> sums(sum_abs_g);
  sums.insert(sums.end(), sum_h.begin(), sum_h.end());
  sums.push_back(static_cast<std::int64_t>(n_rows));
  sums.push_back(static_cast<std::int64_t>(n_training));
  std::vector<std::int64_t> all(sums.size(), 0);
  std::uint32_t first_position = 0;
  std::size_t rank = 0;
  for (const std::vector<std::int64_t>& numbers : workers.gather(sums)) {
    if (rank++ < workers.rank()) first_position += static_cast<std::uint32_t>(numbers.back());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += numbers[i];
  }
  const auto n = static_cast<std::ptrdiff_t>(sum_h.size());
  sum_abs_g.assign(all.begin(), all.begin() + n);
  sum_h.assign(all.begin() + n, all.begin() + 2 * n);
  return {static_cast<std::size_t>(*(all.end() - 2)), first_position};
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
  std::int64_t drop_of_all = bits_of_factor(largest_weight(weights_, rows_.n, team));
  if (weights_ != nullptr) workers_.max({&drop_of_all, 1});
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
    for (std::size_t first = begin, last; first < end; first = last) {
      last = std::min(first + block_rows, end);
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair* output_pairs = from + k * gradients.output_stride();
        std::int64_t sum_abs_g = 0, sum_h = 0;
        for (std::size_t i = first; i < last; ++i) {
          const double scale = weights_ == nullptr ? 1.0 : double{weights_[i]} * factor;
          const FixedPair pair = output_pairs[rows_.position(i) * gradients.row_stride()];
          const FixedPair scaled{nearest(pair.g * scale), nearest(pair.h * scale)};
          gathered[i * outputs + k] = scaled;
          sum_abs_g += std::abs(scaled.g);
          sum_h += scaled.h;
        }
        own_g[k] += sum_abs_g;
        own_h[k] += sum_h;
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

void RowPartition::prepare_narrow(const TreeScaling& scaling, std::uint32_t seed, Team& team) {
  const NarrowArgs args{pairs_.pairs,      rows_, scaling.g.shift(),
                        scaling.h.shift(), seed,  first_position_};
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    grow_kernels().quantise_narrow(args, begin, end, space_.elements[0].data());
  });
  sums_.wide = nullptr;
}

void RowPartition::prepare_wide(const TreeScaling& scaling, std::uint32_t seed, Team& team) {
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  const bool stochastic = scaling.g.stochastic() || scaling.h.stochastic();
  make_room(space_.wide, codes_.n_rows * outputs);
  team.for_chunks(0, rows_.n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    Element* elements = space_.elements[0].data();
    PackedSum* wide = space_.wide.data();
    if (outputs == 1 && rows_.is_all() && !stochastic) {  // the common case
      const WideRounding g = scaling.g, h = scaling.h;
      const FixedPair* pairs = pairs_.pairs;
      const std::size_t stride = pairs_.row_stride;
      for (std::size_t i = begin; i < end; ++i) {
        elements[i] = i;
        wide[i] = pack(g.nearest(pairs[i * stride].g), h.nearest(pairs[i * stride].h));
      }
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const RowId row = rows_.row(i);
      elements[i] = row;
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair pair = pairs_.at(i, k);
        const std::uint32_t random = stochastic ? short_hash(first_position_ + rows_.position(i),
                                                             seed + static_cast<std::uint32_t>(k))
                                                : 0;
        wide[row * outputs + k] =
            pack(scaling.g(pair.g, random & 0xffff), scaling.h(pair.h, random >> 16));
      }
    }
  });
  sums_.wide = space_.wide.data();
}

void RowPartition::set_scale(const TreeScaling& scaling) {
  g_shift_ = scaling.g.shift();
  h_shift_ = scaling.h.shift();
  g_scale_ = std::ldexp(1.0, g_shift_ - pairs_.g_exponent);
  h_scale_ = std::ldexp(1.0, h_shift_ - pairs_.h_exponent);
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
