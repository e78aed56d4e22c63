// Values of a table -> words of codes.
#include "predict/device/walk_records.h"

namespace arboost::cuda {

constexpr std::uint32_t staged_numbers = 256;  // of a column, in shared memory

inline double value_at(const TableRows& table, std::uint64_t row, std::uint32_t column) {
  const unsigned char* at = table.values + static_cast<std::int64_t>(row) * table.row_stride +
                            static_cast<std::int64_t>(column) * table.column_stride;
  switch (table.type) {
    case ValueType::boolean:
      return *at != 0 ? 1.0 : 0.0;
    case ValueType::int8:
      return static_cast<double>(*reinterpret_cast<const std::int8_t*>(at));
    case ValueType::int16:
      return static_cast<double>(*reinterpret_cast<const std::int16_t*>(at));
    case ValueType::int32:
      return static_cast<double>(*reinterpret_cast<const std::int32_t*>(at));
    case ValueType::int64:
      return static_cast<double>(*reinterpret_cast<const std::int64_t*>(at));
    case ValueType::uint8:
      return static_cast<double>(*at);
    case ValueType::uint16:
      return static_cast<double>(*reinterpret_cast<const std::uint16_t*>(at));
    case ValueType::uint32:
      return static_cast<double>(*reinterpret_cast<const std::uint32_t*>(at));
    case ValueType::uint64:
      return static_cast<double>(*reinterpret_cast<const std::uint64_t*>(at));
    case ValueType::float32:
      return static_cast<double>(*reinterpret_cast<const float*>(at));
    default:
      return *reinterpret_cast<const double*>(at);
  }
}

// How many of the ascending numbers are below x.
inline std::uint32_t count_below(const double* numbers, std::uint32_t n, double x) {
  std::uint32_t below = 0;
  for (std::uint32_t step = n == 0 ? 0 : 1u << (31 - __clz(static_cast<int>(n))); step > 0;
       step >>= 1)
    if (below + step <= n && x > numbers[below + step - 1]) below += step;
  return below;
}

inline std::uint32_t code_of(const CodedColumn& column, const double* numbers,
                             const std::uint32_t* level_codes, double x) {
  if (column.kind == CodedColumn::level_codes) {
    const bool known = x >= 0 && x < 255 && x == static_cast<double>(static_cast<int>(x));
    return known ? 1 + static_cast<std::uint32_t>(x) : 0;
  }
  const std::uint32_t below = count_below(numbers, column.n, x);
  if (column.kind == CodedColumn::thresholds) return 1 + below;
  return below < column.n && numbers[below] == x ? level_codes[column.first_code + below] : 0;
}

}  // namespace arboost::cuda

using namespace arboost::cuda;

// A block takes the columns of one word, and a tile of rows.
extern "C" __global__ void __launch_bounds__(256)
    code_rows(TableRows table, CodedColumns coded, std::uint64_t n_rows, std::uint32_t* words) {
  __shared__ double staged[4 * staged_numbers];
  __shared__ CodedColumn columns[4];
  const std::uint32_t first = blockIdx.x * coded.per_word;
  const std::uint32_t n = min(coded.per_word, coded.n_columns - first);
  if (threadIdx.x < n) columns[threadIdx.x] = coded.columns[first + threadIdx.x];
  __syncthreads();
  for (std::uint32_t c = 0; c < n; ++c) {
    if (columns[c].n > staged_numbers) continue;
    for (std::uint32_t i = threadIdx.x; i < columns[c].n; i += blockDim.x)
      staged[c * staged_numbers + i] = coded.numbers[columns[c].first + i];
  }
  __syncthreads();
  const std::uint32_t bits = 32 / coded.per_word;
  const std::uint64_t begin = static_cast<std::uint64_t>(blockIdx.y) * code_tile;
  const std::uint64_t end = min(n_rows, begin + code_tile);
  for (std::uint64_t row = begin + threadIdx.x; row < end; row += blockDim.x) {
    std::uint32_t word = 0;
    for (std::uint32_t c = 0; c < n; ++c) {
      const CodedColumn column = columns[c];
      const double x = value_at(table, row, column.source);
      if (x != x || x == table.missing) continue;
      const double* numbers =
          column.n > staged_numbers ? coded.numbers + column.first : staged + c * staged_numbers;
      word |= code_of(column, numbers, coded.level_codes, x) << (c * bits);
    }
    words[blockIdx.x * n_rows + row] = word;
  }
}
