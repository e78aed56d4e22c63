// Words of codes and SHAP programs -> SHAP values. A thread takes a row, a block some rows and one
// output. Sums are in the order of the host's (explain/shap/shap_kernel.h).
#include "cuda/kernels/warps.cuh"
#include "explain/device/shap_records.h"
#include "predict/device/walk_records.h"

namespace arboost::cuda {

// State of one row; arrays have one number a thread, `stride` apart.
struct ShapRow {
  const std::uint32_t* words;
  double *products, *sums, *phi;
  std::uint64_t stride, word_stride, phi_stride;
  std::uint32_t per_word;
  std::uint64_t left, right;  // bits: the row goes there at this depth
};

inline bool bit_at(std::uint64_t mask, std::uint32_t depth) {
  return mask >> depth & 1;
}
inline double pick(bool apart, bool first, bool second, double if_first, double if_second,
                   double otherwise) {
  return first ? if_first : second || !apart ? if_second : otherwise;
}

inline void split_row(ShapRow& row, const DeviceShapStep& step, const CodeSet* sets) {
  const CodePlace code_place = place_of(step.column, row.per_word);
  const std::uint32_t code =
      row.words[code_place.word * row.word_stride] >> code_place.shift & code_place.mask;
  const bool right = step.flags & ShapFlags::by_set
                         ? !holds(sets[step.test], (code - 1) & 255)
                         : code - (step.flags & ShapFlags::shift ? 1 : 0) > step.test;
  const bool met = !(step.flags & ShapFlags::again) ||
                   bit_at(step.flags & ShapFlags::above_left ? row.left : row.right, step.above);
  const std::uint64_t bit = std::uint64_t{1} << step.depth;
  row.left = met && !right ? row.left | bit : row.left & ~bit;
  row.right = met && right ? row.right | bit : row.right & ~bit;
}

// P points, or n where P is 0.
template <std::uint32_t P>
inline void enter_node(ShapRow& row, const DeviceShapStep& step, const double* numbers,
                       std::uint32_t n, const CodeSet* sets) {
  if (P != 0) n = P;
  double* product = row.products + step.depth * n * row.stride;
  if (step.edge != no_page_numbers) {
    const bool goes_left = bit_at(row.left, step.depth - 1);
    const bool goes_right = bit_at(row.right, step.depth - 1);
    const bool is_left = step.flags & ShapFlags::is_left;
    const bool met = is_left ? goes_left : goes_right, missed = is_left ? goes_right : goes_left;
    const bool apart = step.flags & ShapFlags::again_above;
    const double* in = numbers + step.edge;
    const double* from = product - n * row.stride;
#pragma unroll
    for (std::uint32_t p = 0; p < n; ++p)
      product[p * row.stride] =
          from[p * row.stride] * pick(apart, met, missed, in[p], in[n + p], in[2 * n + p]);
  }
  split_row(row, step, sets);
  if (step.leaves == no_page_numbers) return;
  const bool left = bit_at(row.left, step.depth), right = bit_at(row.right, step.depth);
  const bool apart = step.flags & ShapFlags::again;
  const double* leaf_sums = numbers + step.leaves;
  const double* effects = leaf_sums + 3 * n;
  double* sum = row.sums + step.depth * n * row.stride;
  double total = 0;
#pragma unroll
  for (std::uint32_t p = 0; p < n; ++p) {
    const double above = product[p * row.stride];
    sum[p * row.stride] =
        above * pick(apart, left, right, leaf_sums[p], leaf_sums[n + p], leaf_sums[2 * n + p]);
    total = total + above * pick(apart, left, right, effects[p], effects[n + p], 0.0);
  }
  row.phi[step.column * row.phi_stride] += total;
}

template <std::uint32_t P>
inline void leave_node(ShapRow& row, const DeviceShapStep& step, const double* numbers,
                       std::uint32_t n) {
  if (P != 0) n = P;
  const bool goes_left = bit_at(row.left, step.depth - 1);
  const bool goes_right = bit_at(row.right, step.depth - 1);
  const bool is_left = step.flags & ShapFlags::is_left;
  const bool met = is_left ? goes_left : goes_right, missed = is_left ? goes_right : goes_left;
  const bool apart = step.flags & ShapFlags::again_above;
  const double* in = numbers + step.edge;
  const double* from = row.sums + step.depth * n * row.stride;
  double* to = row.sums + (step.depth - 1) * n * row.stride;
  double total = 0;
#pragma unroll
  for (std::uint32_t p = 0; p < n; ++p) {
    const double below = from[p * row.stride];
    const double here = below * pick(apart, met, missed, in[p], in[n + p], 0.0);
    to[p * row.stride] = step.flags & ShapFlags::adds ? to[p * row.stride] + below : below;
    total = total + here;
  }
  row.phi[step.column * row.phi_stride] += total;
}

template <std::uint32_t P>
inline void walk_page(ShapRow& row, const DeviceShapPage& page, const DeviceShapStep* steps,
                      const double* numbers, const CodeSet* sets) {
  if (page.is_start)
    for (std::uint32_t p = 0; p < page.points; ++p) row.products[p * row.stride] = 1;
  for (std::uint32_t i = 0; i < page.n_steps; ++i) {
    const DeviceShapStep step = steps[i];
    if (step.flags & ShapFlags::is_end)
      leave_node<P>(row, step, numbers, page.points);
    else
      enter_node<P>(row, step, numbers, page.points, sets);
  }
}

inline void copy_staged(void* to, const void* from, std::uint64_t bytes) {
  for (std::uint64_t i = threadIdx.x; i < (bytes + 15) / 16; i += blockDim.x)
    static_cast<uint4*>(to)[i] = static_cast<const uint4*>(from)[i];
}

// All pages of an output, staged in shared memory one after the other. Loops over one of these
// numbers of points are unrolled.
template <std::uint32_t... unrolled>
inline void walk_pages(ShapRow& row, const ShapPages& pages, double* numbers, const CodeSet* sets) {
  auto* steps = reinterpret_cast<DeviceShapStep*>(numbers + page_numbers);
  for (std::uint32_t i = pages.page_start[blockIdx.y]; i < pages.page_start[blockIdx.y + 1]; ++i) {
    const DeviceShapPage page = pages.pages[i];
    __syncthreads();
    copy_staged(numbers, pages.numbers + page.first_number, page.n_numbers * sizeof(double));
    copy_staged(steps, pages.steps + page.first_step, page.n_steps * sizeof(DeviceShapStep));
    __syncthreads();
    const bool is_walked = ((page.points == unrolled &&
                             (walk_page<unrolled>(row, page, steps, numbers, sets), true)) ||
                            ...);
    if (!is_walked) walk_page<0>(row, page, steps, numbers, sets);
  }
}

inline void store_shap(const ShapRow& row, const ShapPages& pages, const ShapResults& out,
                       std::uint64_t number) {
  for (std::uint32_t c = 0; c < pages.n_columns; ++c) {
    const double value = row.phi[c * row.phi_stride] / out.divisors[blockIdx.y];
    out.values[(number * out.n_features + pages.features[c]) * out.n_outputs + blockIdx.y] = value;
  }
}

}  // namespace arboost::cuda

using namespace arboost;
using namespace arboost::cuda;

// Everything in shared memory.
extern "C" __global__ void __launch_bounds__(64)
    shap_rows(CodedRows rows, ShapPages pages, const CodeSet* sets, ShapResults out) {
  ARBOOST_DYNAMIC_SHARED(double, shap_buffer);
  constexpr std::uint32_t staged = page_numbers + page_steps * sizeof(DeviceShapStep) / 8;
  double* buffer = shap_buffer + staged + threadIdx.x;
  const std::uint64_t number = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool is_row = number < rows.n_rows;
  auto* words = reinterpret_cast<std::uint32_t*>(shap_buffer + staged +
                                                 (2 * pages.stack + pages.n_columns) * blockDim.x);
  for (std::uint32_t w = 0; w < rows.n_words; ++w)
    words[w * blockDim.x + threadIdx.x] = is_row ? rows.words[w * rows.n_rows + number] : 0;
  ShapRow row{.words = words + threadIdx.x,
              .products = buffer,
              .sums = buffer + pages.stack * blockDim.x,
              .phi = buffer + 2 * pages.stack * blockDim.x,
              .stride = blockDim.x,
              .word_stride = blockDim.x,
              .phi_stride = blockDim.x,
              .per_word = rows.per_word,
              .left = 0,
              .right = 0};
  for (std::uint32_t c = 0; c < pages.n_columns; ++c) row.phi[c * blockDim.x] = 0;
  walk_pages<1, 2, 3, 4, 6>(row, pages, shap_buffer, sets);
  if (is_row) store_shap(row, pages, out, number);
}

// For wide tables and deep trees: `scratch` has 2 stack + n_columns numbers for each thread.
extern "C" __global__ void __launch_bounds__(64)
    shap_wide_rows(CodedRows rows, ShapPages pages, const CodeSet* sets, ShapResults out,
                   double* scratch) {
  ARBOOST_DYNAMIC_SHARED(double, shap_buffer);
  const std::uint64_t number = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool is_row = number < rows.n_rows;
  const std::uint64_t n = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  double* buffer = scratch + (2ull * pages.stack + pages.n_columns) * n * blockIdx.y + number;
  ShapRow row{.words = rows.words + (is_row ? number : 0),
              .products = buffer,
              .sums = buffer + pages.stack * n,
              .phi = buffer + 2ull * pages.stack * n,
              .stride = n,
              .word_stride = rows.n_rows,
              .phi_stride = n,
              .per_word = rows.per_word,
              .left = 0,
              .right = 0};
  for (std::uint32_t c = 0; c < pages.n_columns; ++c) row.phi[c * n] = 0;
  walk_pages<>(row, pages, shap_buffer, sets);
  if (is_row) store_shap(row, pages, out, number);
}
