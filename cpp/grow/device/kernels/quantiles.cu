// Quantiles of the residuals in each leaf: selection by digits of their bits, from the highest on.
// Weights are integers, so the result is that of loss/quantile.h.
#include "grow/device/kernels/rows.cuh"
#include "grow/device/kernels/words.cuh"
#include "grow/device/records/quantile_records.h"
#include "loss/quantile_goal.h"

constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

inline double residual_of(std::uint64_t key) {
  return __longlong_as_double(static_cast<long long>(key & sign_bit ? key ^ sign_bit : ~key));
}

// Bits of `bad`: of a residual that is not finite.
extern "C" __global__ void residual_items(ResidualRows given, ResidualItem* items,
                                          unsigned long long* bad) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= given.n) return;
  const std::uint32_t position = position_at(given.rows, i);
  const double residual = given.y[position] - given.scores[position * given.outputs] + 0.0;
  auto bits = static_cast<std::uint64_t>(__double_as_longlong(residual));
  if (given.absolute) bits &= ~sign_bit;
  if ((bits & 0x7ff0000000000000u) == 0x7ff0000000000000u) atomicMax(bad, bits);
  std::int64_t weight =
      given.weight == nullptr ? 1 : llrint(given.weight[position] * given.weight_scale);
  if (given.without_zeros && residual == 0) weight = 0;
  const std::uint32_t leaf =
      given.leaf_of_row == nullptr ? 0 : given.leaf_of_row[row_at(given.rows, position)];
  items[i] = {bits & sign_bit ? ~bits : bits | sign_bit, weight, leaf};
}

// Totals: the number of rows whose residual is not 0, and the bits of their largest weight.
extern "C" __global__ void count_nonzero(ResidualRows given, GivenTotals totals) {
  std::int64_t n = 0;
  unsigned long long largest = 0;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < given.n;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t position = position_at(given.rows, i);
    if (given.y[position] == given.scores[position * given.outputs]) continue;
    ++n;
    if (given.weight != nullptr)
      largest = max(largest,
                    static_cast<unsigned long long>(__double_as_longlong(given.weight[position])));
  }
  n = warp_sum(n);
  for (int step = 16; step > 0; step >>= 1)
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, step));
  if (lane_of() == 0) {
    add_to(totals.sums, n);
    atomicMax(reinterpret_cast<unsigned long long*>(totals.sums + 1), largest);
  }
  give_totals(totals);
}

// Adds the weights of a leaf's residuals with its leading bits to [leaf][next digit]; in shared
// memory where all of these sums fit.
extern "C" __global__ void count_digits(const ResidualItem* items, std::uint32_t n, int shift,
                                        int bits, const LeafQuantile* leaves, std::int64_t* counts,
                                        std::uint32_t n_counts, bool fits) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, count_words);
  if (fits)
    for (std::uint32_t j = threadIdx.x; j < 2 * n_counts; j += blockDim.x) count_words[j] = 0;
  __syncthreads();
  const int known = shift + bits;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    const ResidualItem item = items[i];
    if (item.weight <= 0) continue;
    if (known < 64 && item.key >> known != leaves[item.leaf].key) continue;
    const std::uint64_t digit = item.key >> shift & ((std::uint64_t{1} << bits) - 1);
    const std::uint64_t at = (static_cast<std::uint64_t>(item.leaf) << bits) + digit;
    if (fits)
      add_to_words(count_words + 2 * at, item.weight);
    else
      add_to(counts + at, item.weight);
  }
  if (!fits) return;
  __syncthreads();
  add_words(count_words, n_counts, counts);
}

// The next digit of each leaf's quantile; a block takes a leaf.
extern "C" __global__ void choose_digits(std::int64_t* counts, int bits, double alpha,
                                         bool is_first, LeafQuantile* leaves) {
  __shared__ std::int64_t sums[256];
  __shared__ std::uint32_t reached, last;
  LeafQuantile& leaf = leaves[blockIdx.x];
  const std::uint32_t n = 1u << bits, t = threadIdx.x, each = max(1u, n / 256);
  const std::int64_t* leaf_counts = counts + (static_cast<std::uint64_t>(blockIdx.x) << bits);
  const std::uint32_t begin = min(n, t * each), end = min(n, begin + each);
  std::int64_t sum = 0;
  for (std::uint32_t d = begin; d < end; ++d) sum += leaf_counts[d];
  sums[t] = sum;
  if (t == 0) {
    reached = n;
    last = 0;
  }
  __syncthreads();
  for (std::uint32_t step = 1; step < 256; step <<= 1) {
    const std::int64_t other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }
  const std::int64_t all = sums[255];
  const QuantileGoal goal(alpha, is_first ? all : leaf.total);
  const std::int64_t below = is_first ? 0 : leaf.below;
  std::int64_t before = sums[t] - sum;
  for (std::uint32_t d = begin; d < end; ++d) {
    if (leaf_counts[d] == 0) continue;
    before += leaf_counts[d];
    if (goal.reached_by(below + before)) atomicMin(&reached, d);
    atomicMax(&last, d);
  }
  __syncthreads();
  const std::uint32_t digit = reached < n ? reached : last;
  before = sums[t] - sum;
  for (std::uint32_t d = begin; d < end; ++d) {
    if (d == digit) {
      leaf.key = (is_first ? 0 : leaf.key << bits) | digit;
      leaf.next = ~std::uint64_t{0};
      if (is_first) leaf.total = all;
      leaf.below = below + before;
      leaf.inside = leaf_counts[d];
    }
    before += leaf_counts[d];
  }
}

// The lowest residual above each leaf's quantile.
extern "C" __global__ void next_residuals(const ResidualItem* items, std::uint32_t n,
                                          LeafQuantile* leaves) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const ResidualItem item = items[i];
  LeafQuantile& leaf = leaves[item.leaf];
  if (item.weight <= 0 || item.key <= leaf.key) return;
  atomicMin(reinterpret_cast<unsigned long long*>(&leaf.next), item.key);
}

// As in loss/quantile.h, from the leaf's last digit.
inline double quantile_of(const LeafQuantile& leaf, double alpha) {
  if (leaf.total == 0) return 0;
  const double value = residual_of(leaf.key);
  const bool is_largest = leaf.next == ~std::uint64_t{0};
  if (is_largest || QuantileGoal(alpha, leaf.total).passed_by(leaf.below + leaf.inside))
    return value;
  return 0.5 * value + 0.5 * residual_of(leaf.next);
}

// The unit of a leaf's sum of residuals that are cut to delta, as in loss/leaf.cpp.
inline double clipping_scale(const LeafQuantile& leaf, double delta) {
  int weight_bits, delta_bits;
  frexp(static_cast<double>(leaf.total), &weight_bits);
  frexp(delta, &delta_bits);
  return ldexp(1.0, min(62 - delta_bits - weight_bits, 1000));
}

// Sums by leaf of the residuals around its quantile, cut to +-delta, times their weights.
extern "C" __global__ void clipped_sums(const ResidualItem* items, std::uint32_t n,
                                        const LeafQuantile* leaves, LeafStatistic statistic,
                                        std::int64_t* sums, std::uint32_t n_leaves, bool fits) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, sum_words);
  if (fits)
    for (std::uint32_t j = threadIdx.x; j < 2 * n_leaves; j += blockDim.x) sum_words[j] = 0;
  __syncthreads();
  const double delta = statistic.delta;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    const ResidualItem item = items[i];
    if (item.weight <= 0) continue;
    const LeafQuantile& leaf = leaves[item.leaf];
    const double distance = residual_of(item.key) - quantile_of(leaf, statistic.alpha);
    const double clipped = distance < -delta ? -delta : delta < distance ? delta : distance;
    const std::int64_t term =
        llrint(clipped * clipping_scale(leaf, delta) * static_cast<double>(item.weight));
    if (fits)
      add_to_words(sum_words + 2 * item.leaf, term);
    else
      add_to(sums + item.leaf, term);
  }
  if (!fits) return;
  __syncthreads();
  add_words(sum_words, n_leaves, sums);
}

// values[leaf]; behind them the bits of a residual that is not finite, or 0.
extern "C" __global__ void leaf_statistics(const LeafQuantile* leaves, std::uint32_t n,
                                           LeafStatistic statistic, const std::int64_t* sums,
                                           const unsigned long long* bad, double* values) {
  const std::uint32_t j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j == 0) values[n] = __longlong_as_double(static_cast<long long>(*bad));
  if (j >= n) return;
  const LeafQuantile leaf = leaves[j];
  double value = quantile_of(leaf, statistic.alpha);
  if (statistic.delta > 0 && leaf.total > 0)
    value += static_cast<double>(sums[j]) / static_cast<double>(leaf.total) /
             clipping_scale(leaf, statistic.delta);
  values[j] = value;
}
