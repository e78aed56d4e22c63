#include "grow/sample.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>

#include "random.h"

namespace arboost {
namespace {

constexpr std::size_t chunk_rows = 16384;

// No weight is above this: a row of nearly no gradient is drawn a little more often than its share.
constexpr float largest_inverse = 16384;

// Norms fall into buckets by the leading bits of their float: 8 of the exponent, 7 of the mantissa.
constexpr std::size_t n_buckets = std::size_t{1} << 15;
constexpr int bucket_shift = 16;

// Keeps the positions for which keep(position, &weight) is true, in order. Every chunk fills the
// front of its own range; the ranges then move together.
template <bool weighted, class Keep>
void collect(std::size_t n_rows, Keep keep, Sample& out, Team& team) {
  const std::size_t n_chunks = (n_rows + chunk_rows - 1) / chunk_rows;
  std::vector<std::size_t> kept(n_chunks, 0);
  out.positions.resize(n_rows);
  out.weights.resize(weighted ? n_rows : 0);
  team.for_chunks(0, n_rows, chunk_rows, [&](std::size_t begin, std::size_t end, int) {
    std::uint32_t* positions = out.positions.data() + begin;
    float* weights = weighted ? out.weights.data() + begin : nullptr;
    std::size_t n = 0;
    for (std::size_t i = begin; i < end; ++i) {  // written always, kept or not: no branch
      float weight = 1;
      const bool is_kept = keep(static_cast<std::uint32_t>(i), weight);
      positions[n] = static_cast<std::uint32_t>(i);
      if constexpr (weighted) weights[n] = weight;
      n += is_kept ? 1 : 0;
    }
    kept[begin / chunk_rows] = n;
  });
  std::size_t total = 0;
  for (std::size_t c = 0; c < n_chunks; ++c) {
    const auto from = static_cast<std::ptrdiff_t>(c * chunk_rows);
    const auto n = static_cast<std::ptrdiff_t>(kept[c]), to = static_cast<std::ptrdiff_t>(total);
    std::copy_n(out.positions.begin() + from, n, out.positions.begin() + to);
    if (weighted) std::copy_n(out.weights.begin() + from, n, out.weights.begin() + to);
    total += kept[c];
  }
  out.positions.resize(total);
  if (weighted) out.weights.resize(total);
}

// A sample must not be empty: where chance left nothing, the first row by hash is all of it.
void at_least_one(std::size_t n_rows, std::uint32_t seed, bool weighted, Sample& out) {
  if (!out.positions.empty()) return;
  std::uint32_t first = 0;
  for (std::uint32_t i = 1; i < n_rows; ++i)
    if (short_hash(i, seed) < short_hash(first, seed)) first = i;
  out.positions.push_back(first);
  if (weighted) out.weights.push_back(1.0f);
}

// The norms of the rows, and how many fall into each bucket.
std::vector<std::int64_t> measure(const Gradients& gradients, double reg_lambda,
                                  std::vector<float>& norms, Team& team) {
  const float g_unit = std::ldexp(1.0f, -30);
  // Only ratios of norms matter, so gradients count in units of 2^30 integers, and hessians in the
  // same unit of real numbers.
  const auto h_unit = static_cast<float>(
      std::sqrt(reg_lambda) * std::ldexp(1.0, gradients.g_exponent - gradients.h_exponent - 30));
  const std::size_t row_stride = gradients.row_stride(), stride = gradients.output_stride();
  const std::size_t outputs = gradients.outputs;
  std::vector<std::int64_t> counts(n_buckets, 0);
  std::mutex mutex;
  const std::size_t grain = std::max<std::size_t>(8 * n_buckets, chunk_rows);
  team.for_chunks(0, gradients.n_rows, grain, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) norms[i] = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      const FixedPair* pairs = gradients.pairs.data() + k * stride;
      for (std::size_t i = begin; i < end; ++i) {
        const FixedPair pair = pairs[i * row_stride];
        const float g = static_cast<float>(pair.g) * g_unit;
        const float h = static_cast<float>(pair.h) * h_unit;
        norms[i] += g * g + h * h;
      }
    }
    std::vector<std::int64_t> own(n_buckets, 0);
    for (std::size_t i = begin; i < end; ++i) norms[i] = std::sqrt(norms[i]);
    for (std::size_t i = begin; i < end; ++i)
      ++own[std::bit_cast<std::uint32_t>(norms[i]) >> bucket_shift];
    std::lock_guard lock(mutex);
    for (std::size_t b = 0; b < n_buckets; ++b) counts[b] += own[b];
  });
  return counts;
}

// The mu at which sum min(1, s / mu) is `size`, with every s taken for the middle of its bucket.
// From the largest bucket down: with c rows above mu for sure and the sum S of all others,
// mu = S / (size - c), which is right once no bucket below lies above it.
float threshold(const std::vector<std::int64_t>& counts, double size) {
  const auto middle = [](std::size_t b) {
    const auto bits = static_cast<std::uint32_t>((b << bucket_shift) + (1u << (bucket_shift - 1)));
    return double{std::bit_cast<float>(bits)};
  };
  double rest = 0;
  for (std::size_t b = 1; b < n_buckets; ++b)
    if (counts[b] > 0) rest += static_cast<double>(counts[b]) * middle(b);
  double certain = 0;
  for (std::size_t b = n_buckets; b-- > 1;) {
    if (counts[b] == 0) continue;
    if (certain >= size) break;
    if (middle(b) <= rest / (size - certain)) return static_cast<float>(rest / (size - certain));
    certain += static_cast<double>(counts[b]);
    rest -= static_cast<double>(counts[b]) * middle(b);
  }
  return 0;  // fewer rows with a gradient than asked for: all of them
}

}  // namespace

void sample_uniform(std::size_t n_rows, double rate, std::uint32_t seed, Sample& out, Team& team) {
  const auto limit = static_cast<std::uint64_t>(std::ldexp(rate, 32));
  collect<false>(
      n_rows, [=](std::uint32_t i, float&) { return short_hash(i, seed) < limit; }, out, team);
  at_least_one(n_rows, seed, false, out);
}

void sample_by_gradient(const Gradients& gradients, double rate, double reg_lambda,
                        std::uint32_t seed, Sample& out, Team& team) {
  std::vector<float> norms(gradients.n_rows);
  const auto counts = measure(gradients, reg_lambda, norms, team);
  const float mu = threshold(counts, rate * static_cast<double>(gradients.n_rows));
  const float* norm = norms.data();
  collect<true>(
      gradients.n_rows,
      [=](std::uint32_t i, float& weight) {
        const float inverse = std::min(std::max(mu / norm[i], 1.0f), largest_inverse);
        weight = norm[i] > 0 ? inverse : largest_inverse;
        // u < 1 / w, with u in (0, 1): never for u = 1, always for w = 1.
        const float u = (static_cast<float>(short_hash(i, seed) >> 8) + 0.5f) * 0x1p-24f;
        return u * weight < 1.0f;
      },
      out, team);
  at_least_one(gradients.n_rows, seed, true, out);
}

}  // namespace arboost
