// Quantiles of the residuals in each leaf: selection by digits of their bits, from the highest on.
// Weights are integers, so the result is that of loss/quantile.h.
#include "grow/device/kernels/rows.cuh"
#include "grow/device/records/quantile_records.h"
#include "loss/quantile_goal.h"

// Bits of `bad`: of a residual that is not finite.
extern "C" __global__ void residual_items(ResidualRows given, ResidualItem* items,
                                          unsigned long long* bad) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= given.n) return;
  const std::uint32_t position = position_at(given.rows, i);
  const double residual = given.y[position] - given.scores[position * given.outputs] + 0.0;
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(residual));
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if ((bits & 0x7ff0000000000000u) == 0x7ff0000000000000u) atomicMax(bad, bits);
  const std::int64_t weight =
      given.weight == nullptr ? 1 : llrint(given.weight[position] * given.weight_scale);
  items[i] = {bits & sign ? ~bits : bits | sign, weight,
              given.leaf_of_row[row_at(given.rows, position)]};
}

// Adds the weights of a leaf's residuals with its leading bits to [leaf][next digit].
extern "C" __global__ void count_digits(const ResidualItem* items, std::uint32_t n, int shift,
                                        int bits, const LeafQuantile* leaves,
                                        std::int64_t* counts) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const ResidualItem item = items[i];
  const int known = shift + bits;
  if (item.weight <= 0) return;
  if (known < 64 && item.key >> known != leaves[item.leaf].key) return;
  const std::uint64_t digit = item.key >> shift & ((std::uint64_t{1} << bits) - 1);
  add_to(counts + (static_cast<std::uint64_t>(item.leaf) << bits) + digit, item.weight);
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
