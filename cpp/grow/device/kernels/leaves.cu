// A finished tree: sums of its leaves, leaves of rows, scores.
#include "grow/device/kernels/leaf_at.cuh"
#include "grow/device/kernels/rows.cuh"
#include "grow/device/kernels/words.cuh"

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

// Sums of pairs [leaf][output][g, h]; in shared memory where they fit. leaf_of(row) is a row's
// leaf.
template <class LeafOf>
inline void sum_pairs(const PairRows& pairs, bool fits, const GivenTotals& totals, LeafOf leaf_of) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, leaf_words);
  if (fits)
    for (std::uint32_t j = threadIdx.x; j < 2 * totals.n; j += blockDim.x) leaf_words[j] = 0;
  __syncthreads();
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs.n;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t leaf = leaf_of(row_at(pairs.rows, position_at(pairs.rows, i)));
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
  if (fits) add_words(leaf_words, totals.n, totals.sums);
  give_totals(totals);
}

// Notes the leaf of each row of a tree, and sums their pairs.
extern "C" __global__ void walk_sums(DeviceCodes codes, const WalkNode* tree, const NodeTest* tests,
                                     PairRows pairs, std::uint32_t* leaf_of_row, bool fits,
                                     GivenTotals totals) {
  sum_pairs(pairs, fits, totals,
            [&](RowId row) { return leaf_of_row[row] = leaf_at(codes, tree, tests, row); });
}

// The same sums by leaves that are noted.
extern "C" __global__ void sums_by_leaf(PairRows pairs, const std::uint32_t* leaf_of_row, bool fits,
                                        GivenTotals totals) {
  sum_pairs(pairs, fits, totals, [&](RowId row) { return leaf_of_row[row]; });
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
