// Gradients -> integers with the rows; partitions. Parallel for nodes of many rows.
#include "grow/rows.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 4096;

// From this many rows on, pairs of 15 bits travel inside the elements. Below it the data are in the
// caches anyway, and wide pairs cost nothing.
constexpr std::size_t narrow_rows = 32768;

// Narrow pairs are used while the mean |g| and h are at least this many units: stochastic rounding
// keeps sums unbiased, but a few huge gradients must not leave nothing of all others.
constexpr std::int64_t narrow_mean_units = 16;

// The smallest shift, at least `lowest`, after which the sum of n numbers fits 31 bits even if each
// was rounded up.
int shift_for(std::int64_t sum, std::size_t n, int lowest) {
  int shift = lowest;
  while ((sum >> shift) + static_cast<std::int64_t>(n) >= (std::int64_t{1} << 31)) ++shift;
  return shift;
}

std::int64_t round_shift(std::int64_t x, int shift) {
  return shift == 0 ? x : (x + (std::int64_t{1} << (shift - 1))) >> shift;
}

}  // namespace

RowPartition::RowPartition(const Codes& codes, std::size_t outputs, bool counted)
    : codes_(codes), sums_{nullptr, static_cast<int>(outputs), counted} {
  if (codes.n_rows >= (std::size_t{1} << 29))
    throw std::invalid_argument("a table of " + std::to_string(codes.n_rows) +
                                " rows is too long for one process: at most 536,870,911 rows fit. "
                                "Train on a sample of the rows.");
  for (auto& buffer : buffers_) buffer = Buffer<Element>(codes.n_rows);
}

void RowPartition::prepare(const Gradients& gradients, std::size_t output, std::uint32_t seed,
                           Team& team) {
  const auto n = static_cast<std::int64_t>(codes_.n_rows);
  const int g_shift = shift_for(gradients.sum_abs_g[output], codes_.n_rows, 16);
  const int h_shift = shift_for(gradients.sum_h[output], codes_.n_rows, 16);
  const bool narrow = sums_.outputs == 1 && codes_.n_rows >= narrow_rows &&
                      (gradients.sum_abs_g[output] >> g_shift) >= narrow_mean_units * n &&
                      (gradients.sum_h[output] >> h_shift) >= narrow_mean_units * n;
  if (narrow)
    prepare_narrow(gradients, output, g_shift, h_shift, seed, team);
  else
    prepare_wide(gradients, output, team);
}

void RowPartition::prepare_narrow(const Gradients& gradients, std::size_t output, int g_shift,
                                  int h_shift, std::uint32_t seed, Team& team) {
  const FixedPair* pairs = gradients.pairs.data() + output * gradients.output_stride();
  team.for_chunks(0, codes_.n_rows, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    kernels().quantise_narrow(pairs, begin, end, g_shift, h_shift, seed, buffers_[0].data());
  });
  sums_.wide = nullptr;
  g_scale_ = std::ldexp(1.0, g_shift - gradients.g_exponent);
  h_scale_ = std::ldexp(1.0, h_shift - gradients.h_exponent);
}

void RowPartition::prepare_wide(const Gradients& gradients, std::size_t output, Team& team) {
  const std::size_t n = codes_.n_rows;
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  int g_shift = 0, h_shift = 0;
  for (std::size_t k = output; k < output + outputs; ++k) {
    g_shift = shift_for(gradients.sum_abs_g[k], n, g_shift);
    h_shift = shift_for(gradients.sum_h[k], n, h_shift);
  }
  wide_.resize(n * outputs);
  const FixedPair* pairs = gradients.pairs.data() + output * gradients.output_stride();
  team.for_chunks(0, n, 4 * chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      buffers_[0][i] = i;
      for (std::size_t k = 0; k < outputs; ++k) {
        const FixedPair pair = pairs[i * gradients.row_stride() + k];
        wide_[i * outputs + k] = pack(round_shift(pair.g, g_shift), round_shift(pair.h, h_shift));
      }
    }
  });
  sums_.wide = wide_.data();
  g_scale_ = std::ldexp(1.0, g_shift - gradients.g_exponent);
  h_scale_ = std::ldexp(1.0, h_shift - gradients.h_exponent);
}

void RowPartition::read_values(const GrowNode& node, std::int64_t* values) const {
  const Element* e = elements(node);
  const auto outputs = static_cast<std::size_t>(sums_.outputs);
  for (std::size_t i = 0; i < node.n_rows(); ++i) {
    if (sums_.wide == nullptr) {
      const auto pair = static_cast<std::int32_t>(e[i] >> 32);
      *values++ = pack(pair >> 16, pair & 0xffff);
    } else {
      for (std::size_t k = 0; k < outputs; ++k) *values++ = sums_.wide[row_of(e[i]) * outputs + k];
    }
    if (sums_.counted) *values++ = 1;
  }
}

std::size_t RowPartition::split(const GrowNode& node, int member, Team& team) {
  const Element* from = elements(node);
  Element* to = buffers_[1 - node.buffer].data() + node.begin;
  const std::size_t n = node.n_rows();
  const auto feature = static_cast<std::size_t>(node.feature);
  const SplitRule rule{node.split.bin,
                       node.split.missing_left ? codes_.n_bins[feature] : ~std::uint32_t{0}};
  if (team.size() == 1 || n < shared_node_rows)
    return kernels().partition(codes_, feature, rule, from, n, to, to + n);
  // Each chunk is split in a buffer of its own, then takes the next free places on both sides.
  std::atomic<std::size_t> left{0}, right{n};
  team.for_chunks(member, n, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    Element local[chunk_rows];
    const std::size_t size = end - begin;
    const std::size_t n_left =
        kernels().partition(codes_, feature, rule, from + begin, size, local, local + size);
    const std::size_t n_right = size - n_left;
    std::memcpy(to + left.fetch_add(n_left), local, n_left * sizeof(Element));
    std::memcpy(to + right.fetch_sub(n_right) - n_right, local + n_left, n_right * sizeof(Element));
  });
  return left.load();
}

}  // namespace arboost
