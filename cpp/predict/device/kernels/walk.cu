// Words of codes -> scores, leaves and values of trees. Sums of a row are in the order of the
// trees.
#include "cuda/kernels/warps.cuh"
#include "predict/device/walk_records.h"

namespace arboost::cuda {

// Whether a row with this code goes right; `number` is that of the split or its set.
inline bool goes_right(std::uint32_t code, std::uint32_t shift, std::uint32_t number) {
  return code - shift > number;
}
inline bool goes_right(std::uint32_t code, const CodeSet& left) {
  return !holds(left, (code - 1) & 255);
}

inline void store_score(const ScoreRows& out, std::uint64_t row, std::uint32_t output, double sum) {
  if (out.mean_of != 0) sum = sum / out.mean_of + out.base[output];
  out.scores[row * out.n_outputs + output] = sum;
}
inline double start_of(const ScoreRows& out, std::uint32_t output) {
  return out.mean_of != 0 ? 0.0 : out.base[output];
}

// Adds the values of n trees of a group to the sums of a thread's rows.
template <std::uint32_t n, bool with_sets>
inline void add_small(const std::uint32_t* nodes, const double* values, const SmallTrees& trees,
                      const unsigned char* const (&codes)[rows_at_once],
                      double (&sums)[rows_at_once]) {
  std::uint32_t at[rows_at_once][n];
#pragma unroll
  for (std::uint32_t r = 0; r < rows_at_once; ++r)
#pragma unroll
    for (std::uint32_t t = 0; t < n; ++t) at[r][t] = 1;
  for (std::uint32_t level = 0; level < trees.depth; ++level) {
#pragma unroll
    for (std::uint32_t r = 0; r < rows_at_once; ++r)
#pragma unroll
      for (std::uint32_t t = 0; t < n; ++t) {
        const std::uint32_t node = nodes[(t << trees.depth) + at[r][t]];
        const std::uint32_t code = codes[r][node >> 16];
        bool right = goes_right(code, node >> 8 & 1, node & 255);
        if constexpr (with_sets)
          if (node & small_set)
            right = goes_right(code, trees.sets[(node & 255) | (node >> 10 & 63) << 8]);
        at[r][t] = 2 * at[r][t] + (right ? 1 : 0);
      }
  }
#pragma unroll
  for (std::uint32_t r = 0; r < rows_at_once; ++r)
#pragma unroll
    for (std::uint32_t t = 0; t < n; ++t)
      sums[r] += values[(t << trees.depth) + at[r][t] - (1u << trees.depth)];
}

template <bool with_sets>
inline void walk_small(const CodedRows& rows, const SmallTrees& trees, const ScoreRows& out) {
  ARBOOST_DYNAMIC_SHARED(double, small_buffer);
  double* values = small_buffer;
  const std::uint32_t n_nodes = trees.most_trees << trees.depth, n_rows = trees.block_rows;
  auto* nodes = reinterpret_cast<std::uint32_t*>(values + n_nodes);
  std::uint32_t* words = nodes + n_nodes;
  const std::uint64_t first = static_cast<std::uint64_t>(blockIdx.x) * n_rows;
  for (std::uint32_t w = 0; w < rows.n_words; ++w)
    for (std::uint32_t i = threadIdx.x; i < n_rows; i += blockDim.x)
      words[w * n_rows + i] = first + i < rows.n_rows ? rows.words[w * rows.n_rows + first + i] : 0;
  const unsigned char* codes[rows_at_once];
  double sums[rows_at_once];
  for (std::uint32_t r = 0; r < rows_at_once; ++r)
    codes[r] = reinterpret_cast<const unsigned char*>(words + threadIdx.x + r * blockDim.x);
  for (std::uint32_t g = 0; g < trees.n_groups; ++g) {
    const TreeGroup group = trees.groups[g];
    const std::uint32_t begin = group.first << trees.depth, size = group.n << trees.depth;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) {
      values[i] = trees.values[begin + i];
      nodes[i] = trees.nodes[begin + i];
    }
    __syncthreads();
    if (group.is_first)
      for (double& sum : sums) sum = start_of(out, group.output);
    std::uint32_t t = 0;
    for (; t + 4 <= group.n; t += 4)
      add_small<4, with_sets>(nodes + (t << trees.depth), values + (t << trees.depth), trees, codes,
                              sums);
    for (; t < group.n; ++t)
      add_small<1, with_sets>(nodes + (t << trees.depth), values + (t << trees.depth), trees, codes,
                              sums);
    if (group.is_last)
      for (std::uint32_t r = 0; r < rows_at_once; ++r) {
        const std::uint64_t row = first + threadIdx.x + r * blockDim.x;
        if (row < rows.n_rows) store_score(out, row, group.output, sums[r]);
      }
  }
}

// The words of a block's rows, in shared memory where they fit.
struct RowCodes {
  const std::uint32_t* words;  // of this row
  std::uint64_t stride;
  std::uint32_t per_word;
};
inline RowCodes row_codes(const CodedRows& rows, std::uint32_t* shared, std::uint64_t row) {
  if (shared == nullptr) return {rows.words + row, rows.n_rows, rows.per_word};
  for (std::uint32_t w = 0; w < rows.n_words; ++w)
    shared[w * blockDim.x + threadIdx.x] = rows.words[w * rows.n_rows + row];
  return {shared + threadIdx.x, blockDim.x, rows.per_word};
}

// The leaf of a row in a tree.
inline std::uint32_t leaf_of(const ForestNode* tree, const RowCodes& row, const CodeSet* sets) {
  std::uint32_t at = 0;
  for (;;) {
    const uint4 loaded = *reinterpret_cast<const uint4*>(tree + at);
    if (loaded.x == 0) return at;
    const CodePlace code_place = place_of(loaded.y & column_mask, row.per_word);
    const std::uint32_t code =
        row.words[code_place.word * row.stride] >> code_place.shift & code_place.mask;
    const bool right = loaded.y & set_flag ? goes_right(code, sets[loaded.z])
                                           : goes_right(code, loaded.y >> 31, loaded.z);
    at = loaded.x + (right ? 1 : 0);
  }
}
inline double value_of(const ForestNode& leaf) {
  return __longlong_as_double(static_cast<long long>(leaf.content));
}

}  // namespace arboost::cuda

using namespace arboost::cuda;

extern "C" __global__ void __launch_bounds__(256)
    walk_small_trees(CodedRows rows, SmallTrees trees, ScoreRows out) {
  walk_small<false>(rows, trees, out);
}
extern "C" __global__ void __launch_bounds__(256)
    walk_small_trees_with_sets(CodedRows rows, SmallTrees trees, ScoreRows out) {
  walk_small<true>(rows, trees, out);
}

// Trees of leaves of one value. A block takes one output (y).
extern "C" __global__ void __launch_bounds__(128)
    walk_trees(CodedRows rows, AnyTrees trees, ScoreRows out, bool in_shared) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, row_words);
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows.n_rows) return;
  const RowCodes codes = row_codes(rows, in_shared ? row_words : nullptr, row);
  const std::uint32_t output = blockIdx.y;
  double sum = start_of(out, output);
  for (std::uint32_t i = trees.output_start[output]; i < trees.output_start[output + 1]; ++i) {
    const ForestNode* tree = trees.nodes + trees.tree_start[trees.order[i]];
    sum += value_of(tree[leaf_of(tree, codes, trees.sets)]);
  }
  store_score(out, row, output, sum);
}

// Trees whose leaves have a value for each output. A block takes some outputs (y).
extern "C" __global__ void __launch_bounds__(128)
    walk_vector_trees(CodedRows rows, AnyTrees trees, ScoreRows out, bool in_shared) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, row_words);
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows.n_rows) return;
  const RowCodes codes = row_codes(rows, in_shared ? row_words : nullptr, row);
  const std::uint32_t first = blockIdx.y * outputs_at_once;
  const std::uint32_t n = min(outputs_at_once, trees.width - first);
  double sums[outputs_at_once];
#pragma unroll
  for (std::uint32_t k = 0; k < outputs_at_once; ++k)
    sums[k] = k < n ? start_of(out, first + k) : 0;
  for (std::uint32_t t = 0; t < trees.n_trees; ++t) {
    const std::uint64_t start = trees.tree_start[t];
    const std::uint64_t leaf = start + leaf_of(trees.nodes + start, codes, trees.sets);
    const double* values = trees.values + leaf * trees.width + first;
#pragma unroll
    for (std::uint32_t k = 0; k < outputs_at_once; ++k)
      if (k < n) sums[k] += values[k];
  }
#pragma unroll
  for (std::uint32_t k = 0; k < outputs_at_once; ++k)
    if (k < n) store_score(out, row, first + k, sums[k]);
}

// leaves[row][tree]
extern "C" __global__ void __launch_bounds__(128)
    walk_leaves(CodedRows rows, AnyTrees trees, std::int32_t* leaves, bool in_shared) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, row_words);
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows.n_rows) return;
  const RowCodes codes = row_codes(rows, in_shared ? row_words : nullptr, row);
  for (std::uint32_t t = 0; t < trees.n_trees; ++t)
    leaves[row * trees.n_trees + t] =
        static_cast<std::int32_t>(leaf_of(trees.nodes + trees.tree_start[t], codes, trees.sets));
}

// The weighted median of the trees' values. `values` has room for [tree][row].
extern "C" __global__ void __launch_bounds__(128)
    walk_medians(CodedRows rows, AnyTrees trees, ScoreRows out, const double* weights,
                 double* values, bool in_shared) {
  ARBOOST_DYNAMIC_SHARED(std::uint32_t, row_words);
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows.n_rows) return;
  const RowCodes codes = row_codes(rows, in_shared ? row_words : nullptr, row);
  double* row_values = values + row;
  for (std::uint32_t t = 0; t < trees.n_trees; ++t) {
    const ForestNode* tree = trees.nodes + trees.tree_start[t];
    row_values[t * rows.n_rows] = value_of(tree[leaf_of(tree, codes, trees.sets)]);
  }
  // In the order of the values, and of the trees where values are equal: first the sum of all
  // weights, then the value at which their sum reaches half of it.
  double total = 0, sum = 0;
  std::uint32_t last = trees.n_trees;  // none
  for (std::uint32_t i = 0; i < 2 * trees.n_trees; ++i) {
    if (i == trees.n_trees) last = trees.n_trees;
    std::uint32_t next = trees.n_trees;
    for (std::uint32_t t = 0; t < trees.n_trees; ++t) {
      const double value = row_values[t * rows.n_rows];
      const bool is_after = last == trees.n_trees || value > row_values[last * rows.n_rows] ||
                            (value == row_values[last * rows.n_rows] && t > last);
      if (is_after && (next == trees.n_trees || value < row_values[next * rows.n_rows])) next = t;
    }
    last = next;
    if (i < trees.n_trees) {
      total += weights[last];
    } else {
      sum += weights[last];
      if (sum >= 0.5 * total) break;
    }
  }
  out.scores[row] = out.base[0] + row_values[last * rows.n_rows];
}
