// Raw scores -> predictions and labels.
#include "loss/far_exponents.h"
#include "loss/functions.h"
#include "predict/device/walk_records.h"
#include "predict/link_parts.h"

namespace arboost::cuda {

// As `exponentials` of loss/elementary.h.
inline double any_exp_of(double x) {
  if (!is_far_exponent(x)) return device::exp_of(x);
  const double root = device::exp_of(half_of_exponent(x));
  return root * root;
}

inline void softmax(const double* raw, std::uint32_t n, double* out) {
  const double highest = highest_score(raw, n);
  double sum = 0;
  for (std::uint32_t k = 0; k < n; ++k) {
    out[k] = any_exp_of(raw[k] - highest);
    sum += out[k];
  }
  for (std::uint32_t k = 0; k < n; ++k) out[k] /= sum;
}

inline void store(double* out, TwoShares shares) {
  out[0] = shares.first;
  out[1] = shares.second;
}

}  // namespace arboost::cuda

using namespace arboost;
using namespace arboost::cuda;

// `raw` has `stride` numbers a row, the first `n_outputs` of which count.
extern "C" __global__ void link_rows(std::int32_t link, const double* raw, std::uint32_t stride,
                                     std::uint32_t n_outputs, std::uint64_t n_rows, double* out) {
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  const double* row_scores = raw + row * stride;
  double* wide = out + row * n_outputs;
  switch (static_cast<Link>(link)) {
    case Link::identity:
      for (std::uint32_t k = 0; k < n_outputs; ++k) wide[k] = row_scores[k];
      break;
    case Link::exp:
      for (std::uint32_t k = 0; k < n_outputs; ++k)
        wide[k] = any_exp_of(exponent_of_exp(row_scores[k]));
      break;
    case Link::logistic:
    case Link::logistic_of_double: {
      const double factor = static_cast<Link>(link) == Link::logistic ? 1 : 2;
      const double small = any_exp_of(exponent_of_logistic(row_scores[0], factor));
      store(out + 2 * row, shares_of_logistic(row_scores[0], small));
      break;
    }
    case Link::softmax:
      softmax(row_scores, n_outputs, wide);
      break;
    case Link::share_of_two:
      store(out + 2 * row, shares_of_difference(row_scores[0]));
      break;
    case Link::shares:
      for (std::uint32_t k = 0; k < n_outputs; ++k) wide[k] = clipped(row_scores[k], 0.0, 1.0);
      break;
  }
}

// The scores of each row, ascending.
extern "C" __global__ void sort_rows(const double* raw, std::uint32_t n_outputs,
                                     std::uint64_t n_rows, double* out) {
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  double* sorted = out + row * n_outputs;
  for (std::uint32_t k = 0; k < n_outputs; ++k) {
    const double score = raw[row * n_outputs + k];
    std::uint32_t at = k;
    for (; at > 0 && sorted[at - 1] > score; --at) sorted[at] = sorted[at - 1];
    sorted[at] = score;
  }
}

// The label of the highest score, the first of equal ones; of two classes with one score, of its
// sign. Labels have `bytes` bytes; rows of the result have `out_stride` labels.
extern "C" __global__ void likeliest_labels(const double* raw, std::uint32_t stride,
                                            std::uint32_t n_outputs, std::uint64_t n_rows,
                                            const unsigned char* labels, std::uint32_t bytes,
                                            std::uint32_t out_stride, unsigned char* out) {
  const std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n_rows) return;
  const double* row_scores = raw + row * stride;
  std::uint32_t best = n_outputs == 1 && row_scores[0] > 0 ? 1 : 0;
  for (std::uint32_t k = 1; k < n_outputs; ++k)
    if (row_scores[k] > row_scores[best]) best = k;
  for (std::uint32_t i = 0; i < bytes; ++i)
    out[row * out_stride * bytes + i] = labels[best * bytes + i];
}
