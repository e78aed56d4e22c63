// A finished tree: sums of its leaves, leaves of rows, scores.
#include "grow/device/kernels/leaf_at.cuh"
#include "grow/device/kernels/rows.cuh"

// number_of_row[row(i)] = i
extern "C" __global__ void number_rows(RowNumbers rows, std::uint32_t n,
                                       std::uint32_t* number_of_row) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) number_of_row[row_at(rows, position_at(rows, i))] = i;
}

extern "C" __global__ void walk(DeviceCodes codes, const WalkNode* tree, const NodeTest* tests,
                                RowNumbers rows, std::uint32_t n, std::uint32_t* leaf_of_row) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const RowId row = row_at(rows, position_at(rows, i));
  leaf_of_row[row] = leaf_at(codes, tree, tests, row);
}

// Adds to a sum in shared memory, of two words: atomics of 64 bits are slow.
inline void add_to_words(std::uint32_t* words, std::int64_t value) {
  const auto low = static_cast<std::uint32_t>(value);
  const std::uint32_t before = atomicAdd(&words[0], low);
  const std::uint32_t carry = before + low < before ? 1 : 0;
  const std::uint32_t high = static_cast<std::uint32_t>(value >> 32) + carry;
  if (high != 0) atomicAdd(&words[1], high);
}

// Notes the leaf of each row of a tree, and sums their pairs [leaf][output][g, h]; in shared memory
// where they fit.
extern "C" __global__ void walk_sums(DeviceCodes codes, const WalkNode* tree, const NodeTest* tests,
                                     PairRows pairs, std::uint32_t* leaf_of_row, bool fits,
                                     GivenTotals totals) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, leaf_words);
  if (fits)
    for (std::uint32_t j = threadIdx.x; j < 2 * totals.n; j += blockDim.x) leaf_words[j] = 0;
  __syncthreads();
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs.n;
       i += gridDim.x * blockDim.x) {
    const RowId row = row_at(pairs.rows, position_at(pairs.rows, i));
    const std::uint32_t leaf = leaf_at(codes, tree, tests, row);
    leaf_of_row[row] = leaf;
    for (std::uint32_t k = 0; k < pairs.outputs; ++k) {
      const FixedPair pair = pairs.pairs[i * pairs.row_stride + k * pairs.output_stride];
      const std::uint32_t at = (leaf * pairs.outputs + k) * 2;
      if (fits) {
        add_to_words(leaf_words + 2 * at, pair.g);
        add_to_words(leaf_words + 2 * at + 2, pair.h);
      } else {
        add_to(totals.sums + at, pair.g);
        add_to(totals.sums + at + 1, pair.h);
      }
    }
  }
  __syncthreads();
  if (fits)
    for (std::uint32_t j = threadIdx.x; j < totals.n; j += blockDim.x) {
      const std::uint64_t sum =
          static_cast<std::uint64_t>(leaf_words[2 * j + 1]) << 32 | leaf_words[2 * j];
      if (sum != 0) add_to(totals.sums + j, static_cast<std::int64_t>(sum));
    }
  give_totals(totals);
}

// scores[position][...] += values of the leaf of each row, [leaf][width]; `outputs` scores a row.
extern "C" __global__ void add_values(const std::uint32_t* leaf_of_row, RowNumbers rows,
                                      std::uint32_t n, const double* values, std::uint32_t width,
                                      std::uint32_t outputs, double* scores) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::uint32_t position = position_at(rows, i);
  const std::uint32_t leaf = leaf_of_row[row_at(rows, position)];
  for (std::uint32_t k = 0; k < width; ++k)
    scores[static_cast<std::uint64_t>(position) * outputs + k] += values[leaf * width + k];
}

// Sums of pairs [leaf][output][g, h] by the leaves of rows.
extern "C" __global__ void sums_by_leaf(PairRows pairs, const std::uint32_t* leaf_of_row,
                                        GivenTotals totals) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs.n;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t leaf = leaf_of_row[row_at(pairs.rows, position_at(pairs.rows, i))];
    for (std::uint32_t k = 0; k < pairs.outputs; ++k) {
      const FixedPair pair = pairs.pairs[i * pairs.row_stride + k * pairs.output_stride];
      std::int64_t* sum = totals.sums + (static_cast<std::uint64_t>(leaf) * pairs.outputs + k) * 2;
      add_to(sum, pair.g);
      add_to(sum + 1, pair.h);
    }
  }
  give_totals(totals);
}
