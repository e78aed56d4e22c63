// Values of some rows, distinct values of a column, and stored columns that features share.
#include "bin/device/kernels/values.cuh"
#include "bin/edges/number_keys.h"

// Neighbouring threads read neighbouring values: of a row, or of a column.
extern "C" __global__ void gather_values(const arboost::cuda::GatheredColumn* columns,
                                         std::uint32_t n_columns, arboost::cuda::TableRows rows,
                                         std::uint32_t by_row) {
  const std::uint64_t n = rows.n * n_columns;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t j = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; j < n;
       j += step) {
    const std::uint64_t i = by_row ? j / n_columns : j % rows.n;
    const arboost::cuda::GatheredColumn& column = columns[by_row ? j % n_columns : j / rows.n];
    const std::uint64_t row = arboost::cuda::table_row(rows, i);
    arboost::with_number(column.column.type, [&]<class T>() {
      reinterpret_cast<T*>(column.to)[i] = arboost::cuda::raw_value<T>(column.column, row);
    });
  }
}

// Whether a column has integers that a double may not hold, from 2^53 on.
extern "C" __global__ void find_inexact(const arboost::cuda::DeviceColumn* columns,
                                        std::uint64_t n_rows, std::uint32_t* is_inexact) {
  constexpr double limit = 0x1p53;
  const arboost::cuda::DeviceColumn column = columns[blockIdx.y];
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < n_rows; i += step) {
    const double x = arboost::cuda::value_at(column, i);
    if (x >= limit || x <= -limit) is_inexact[blockIdx.y] = 1;
  }
}

// Adds the values that are not known to the hash set. A set of more than `most` keys may lack some.
extern "C" __global__ void find_values(const arboost::cuda::ValueSearch* searches,
                                       arboost::cuda::TableRows rows) {
  const arboost::cuda::ValueSearch search = searches[blockIdx.y];
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < rows.n; i += step) {
    const double x = arboost::cuda::value_at(search.column, arboost::cuda::table_row(rows, i));
    if (x != x) continue;
    const std::uint32_t at = arboost::cuda::count_below(
        search.n_known, x, [&](std::uint32_t k) { return search.known[k]; });
    if (at < search.n_known && search.known[at] == x) continue;
    if (*const_cast<volatile std::uint32_t*>(search.n_found) > search.most) return;
    const unsigned long long key = arboost::key_of(x), empty = arboost::no_key;
    // Keys of round numbers differ in their leading bits only: fold those in, take the top bits.
    std::uint64_t slot = ((key ^ key >> 29) * 0x9e3779b97f4a7c15u) >> 32;
    // A set that is full has more than `most` keys.
    for (std::uint32_t probe = 0; probe < search.n_slots; ++probe, ++slot) {
      const unsigned long long before =
          atomicCAS(&search.slots[slot & (search.n_slots - 1)], empty, key);
      if (before == empty) atomicAdd(search.n_found, 1u);
      if (before == empty || before == key) break;
    }
  }
}

// Codes of features -> codes of the stored columns that they share, as on the host
// (bin/codes/encode.cpp); counts the rows where two features of a digit are away from their usual
// codes.
extern "C" __global__ void share_columns(const arboost::cuda::SharedColumn* columns,
                                         const arboost::cuda::SharedDigit* digits,
                                         const arboost::cuda::SharedFeature* shares,
                                         std::uint64_t n_rows, unsigned long long* clashes) {
  const arboost::cuda::SharedColumn column = columns[blockIdx.y];
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t row = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       row < n_rows; row += step) {
    std::uint32_t code = 0;
    for (std::uint32_t d = column.first_digit; d < column.first_digit + column.n_digits; ++d) {
      const arboost::cuda::SharedDigit digit = digits[d];
      std::uint32_t digit_code = 0;
      for (std::uint32_t s = digit.first_share; s < digit.first_share + digit.n_shares; ++s) {
        const std::uint32_t more = shares[s].digit_of[shares[s].codes[row]];
        if (digit_code != 0 && more != 0) atomicAdd(&clashes[s], 1ull);
        digit_code = digit_code != 0 ? digit_code : more;
      }
      code += digit_code * digit.stride;
    }
    column.codes[row] = static_cast<std::uint8_t>(code);
  }
}
