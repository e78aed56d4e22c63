// Passes of about 1 ns a row, parallel over chunks of rows; the sample does not depend on the
// chunks.
#include "grow/sample/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/buffer.h"  // make_room
#include "base/random.h"
#include "grow/kernels/grow_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 16384;

// Largest weight: rows of tiny gradients are drawn a little more often than their share.
constexpr float largest_weight = 16384;

// Norms fall into buckets by the leading bits of their float: 8 of the exponent, 5 of the mantissa.
constexpr int bucket_shift = 18;

// Draws rows of [first, last), whose positions are counted from `first`. Every chunk fills the
// front of its own range; the ranges then move together. `draw_chunk` is a kernel with its
// arguments but the last four.
template <class DrawChunk>
void collect_range(std::size_t first, std::size_t last, bool weighted, DrawChunk draw_chunk,
                   Sample& out, Team& team) {
  const std::size_t n_rows = last - first, n_chunks = (n_rows + chunk_rows - 1) / chunk_rows;
  std::vector<std::size_t> kept(n_chunks, 0);
  out.weighted = weighted;
  out.on_device = false;
  make_room(out.positions, std::max<std::size_t>(1, n_rows));
  if (out.weighted) make_room(out.weights, std::max<std::size_t>(1, n_rows));
  std::uint32_t* positions = out.positions.data();
  float* weights = out.weighted ? out.weights.data() : nullptr;
  team.for_chunks(0, n_rows, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    kept[begin / chunk_rows] = draw_chunk(first + begin, first + end, positions + begin,
                                          weights == nullptr ? nullptr : weights + begin);
  });
  out.size = 0;
  for (std::size_t c = 0; c < n_chunks; ++c) {
    const std::size_t from = c * chunk_rows;
    std::memmove(positions + out.size, positions + from, kept[c] * sizeof *positions);
    if (weights != nullptr)
      std::memmove(weights + out.size, weights + from, kept[c] * sizeof *weights);
    out.size += kept[c];
  }
  for (std::size_t i = 0; first > 0 && i < out.size; ++i)
    positions[i] -= static_cast<std::uint32_t>(first);
}

// The same of all rows, at least one.
template <class DrawChunk>
void collect(std::size_t n_rows, std::uint32_t seed, bool weighted, DrawChunk draw_chunk,
             Sample& out, Team& team) {
  collect_range(0, n_rows, weighted, draw_chunk, out, team);
  if (out.size > 0) return;
  out.size = 1;
  out.positions[0] = row_of_empty(n_rows, seed);
  if (weighted) out.weights[0] = 1;
}

void collect(std::size_t n_rows, const DrawArgs& args, Sample& out, Team& team) {
  collect(
      n_rows, args.seed, args.norms.pairs != nullptr,
      [&](auto... range) { return grow_kernels().draw(args, range...); }, out, team);
}

std::vector<float> norms_at(NormArgs args, const NormRows& rows, Team& team) {
  args.row_stride *= rows.step;
  std::vector<float> norms(rows.n);
  team.for_chunks(0, rows.n, chunk_rows / 4, [&](std::size_t begin, std::size_t end, int) {
    grow_kernels().gradient_norms(args, begin, end, norms.data() + begin);
  });
  return norms;
}

// Histogram of norms in 2^(31 - shift) buckets.
std::vector<std::int64_t> count_norms(std::span<const float> norms, int shift) {
  std::vector<std::int64_t> counts(std::size_t{1} << (31 - shift), 0);
  for (const float norm : norms) ++counts[std::bit_cast<std::uint32_t>(norm) >> shift];
  return counts;
}

// All rows or about 2^log_rows of them. (An odd distance, against tables in which classes take
// turns.)
NormRows rows_for(std::size_t n_rows, int log_rows) {
  const std::size_t step = n_rows >> log_rows | 1;
  return {step, n_rows / step};
}

// The mu at which the mean of min(1, s / mu) is `rate`, every s taken for the middle of its bucket.
// From the largest bucket down: with c rows above mu for sure and the sum S of all others,
// mu = S / (size - c), which is right once no bucket below lies above it.
float threshold(const std::vector<std::int64_t>& counts, double rate) {
  std::int64_t n = 0;
  for (const std::int64_t count : counts) n += count;
  const double size = rate * static_cast<double>(n);
  const auto middle = [](std::size_t b) {
    const auto bits = static_cast<std::uint32_t>((b << bucket_shift) + (1u << (bucket_shift - 1)));
    return double{std::bit_cast<float>(bits)};
  };
  double rest = 0;
  for (std::size_t b = 1; b < counts.size(); ++b)
    if (counts[b] > 0) rest += static_cast<double>(counts[b]) * middle(b);
  double certain = 0;
  for (std::size_t b = counts.size(); b-- > 1;) {
    if (counts[b] == 0) continue;
    if (certain >= size) break;
    if (middle(b) <= rest / (size - certain)) return static_cast<float>(rest / (size - certain));
    certain += static_cast<double>(counts[b]);
    rest -= static_cast<double>(counts[b]) * middle(b);
  }
  return 0;  // fewer rows with a gradient than asked for: all of them
}

// One-side sampling needs finer buckets of the squared norms (8 bits of the exponent, 8 of the
// mantissa) and more rows, so that the kept share is right to 0.2 % of all rows.
constexpr int fine_shift = 15;
constexpr int fine_log_rows = 16;

float fine_start(std::size_t bucket) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bucket << fine_shift));
}

std::int32_t chance(double share) {
  return static_cast<std::int32_t>(std::nearbyint(share * 0x1p24));
}

}  // namespace

DrawArgs uniform_plan(double rate, std::uint32_t seed) {
  // The largest of round(rate * 2^32) hashes; the rate is above 0 and below 1.
  const double below = std::clamp(std::nearbyint(std::ldexp(rate, 32)), 1.0, 0x1p32);
  return {seed, static_cast<std::uint32_t>(below - 1), {}, 0, 1};
}

NormArgs norms_of(const Gradients& gradients, double reg_lambda, bool squared) {
  // Only ratios of norms matter: gradients count 2^-30 an integer, and hessians as much as they are
  // worth in that unit.
  const double h_unit =
      std::sqrt(reg_lambda) * std::ldexp(1.0, gradients.g_exponent - gradients.h_exponent - 30);
  return {gradients.pairs.data(),
          gradients.row_stride(),
          gradients.output_stride(),
          gradients.outputs,
          0x1p-30f,
          static_cast<float>(h_unit),
          squared};
}

NormRows rows_by_gradient(std::size_t n_rows) {
  return rows_for(n_rows, 14);
}

DrawArgs plan_by_gradient(const NormArgs& norms, std::span<const float> counted, double rate,
                          std::uint32_t seed) {
  const float mu = threshold(count_norms(counted, bucket_shift), rate);
  return {seed, 0, norms, mu, largest_weight};
}

NormRows rows_one_side(std::size_t n_rows) {
  return rows_for(n_rows, fine_log_rows);
}

TopArgs plan_one_side(const NormArgs& norms, std::span<const float> counted, double top_rate,
                      double other_rate, std::uint32_t seed) {
  const std::vector<std::int64_t> counts = count_norms(counted, fine_shift);
  const auto n_counted = static_cast<double>(counted.size());
  // Down to the bucket of the last large row. At least one row is large and no square is infinite,
  // so a bucket above it exists.
  const double n_large = top_rate * n_counted;
  double above = 0, at = 0;
  std::size_t last = counts.size();
  while (last > 0 && above + at < n_large) {
    above += at;
    at = static_cast<double>(counts[--last]);
  }
  const double q = std::min(1.0, (n_large - above) / at);
  const double p = std::max(1.0 / largest_weight, std::min(1.0, other_rate / (1.0 - top_rate)));
  const std::int32_t other_kept = chance(p);
  const double exact_p = other_kept * 0x1p-24;  // the probability that the weight inverts
  const std::int32_t at_large = chance(q);
  return {.seed = seed,
          .norms = norms,
          .above = fine_start(last + 1),
          .at = fine_start(last),
          .at_large = at_large,
          .at_kept = at_large + chance((1.0 - at_large * 0x1p-24) * exact_p),
          .other_kept = other_kept,
          .weight = static_cast<float>(1.0 / exact_p)};
}

std::uint32_t row_of_empty(std::size_t n_rows, std::uint32_t seed) {
  std::uint32_t first = 0;
  for (std::uint32_t i = 1; i < n_rows; ++i)
    if (short_hash(i, seed) < short_hash(first, seed)) first = i;
  return first;
}

void sample_uniform(std::size_t n_rows, double rate, std::uint32_t seed, Sample& out, Team& team) {
  collect(n_rows, uniform_plan(rate, seed), out, team);
}

void sample_uniform(std::size_t begin, std::size_t end, double rate, std::uint32_t seed,
                    Sample& out, Team& team) {
  const DrawArgs args = uniform_plan(rate, seed);
  collect_range(
      begin, end, false, [&](auto... range) { return grow_kernels().draw(args, range...); }, out,
      team);
}

void sample_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t seed, Sample& out, Team& team) {
  const NormArgs norms = norms_of(gradients, reg_lambda, false);
  const std::vector<float> counted = norms_at(norms, rows_by_gradient(gradients.n_rows), team);
  collect(gradients.n_rows, plan_by_gradient(norms, counted, rate, seed), out, team);
}

void sample_one_side(const Gradients& gradients, double top_rate, double other_rate,
                     std::uint32_t seed, Sample& out, Team& team) {
  const NormArgs norms = norms_of(gradients, 0, true);
  const std::vector<float> counted = norms_at(norms, rows_one_side(gradients.n_rows), team);
  const TopArgs args = plan_one_side(norms, counted, top_rate, other_rate, seed);
  collect(
      gradients.n_rows, seed, true,
      [&](auto... range) { return grow_kernels().draw_top(args, range...); }, out, team);
}

}  // namespace arboost
