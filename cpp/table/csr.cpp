// CSR -> CSC with narrow values. Linear in stored values, rows and columns; not threaded.
#include "table/csr.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

namespace arboost {
namespace {

// The types that the values of a matrix may be narrowed to.
struct Narrow {
  bool is_one = true;  // all values are the same
  bool int8 = true, int16 = true, float32 = true;
};

Narrow find_narrow(const Column& values, std::size_t n) {
  Narrow narrow;
  double block[block_rows], first = 0;
  for (std::size_t begin = 0; begin < n; begin += block_rows) {
    const std::size_t size = std::min(block_rows, n - begin);
    read_block(values, begin, begin + size, block, 1);
    if (begin == 0) first = block[0];
    for (std::size_t i = 0; i < size; ++i) {
      const double x = block[i];
      const bool is_whole = std::trunc(x) == x && !(x == 0 && std::signbit(x));  // false for NaN
      narrow.is_one = narrow.is_one && x == first;
      narrow.int8 = narrow.int8 && is_whole && x >= -128 && x <= 127;
      narrow.int16 = narrow.int16 && is_whole && x >= -32768 && x <= 32767;
      narrow.float32 =
          narrow.float32 && !(static_cast<double>(static_cast<float>(x)) != x && x == x);
    }
    if (!narrow.float32 && !narrow.int16 && !narrow.is_one) break;
  }
  return narrow;
}

template <class Index>
std::vector<std::size_t> column_starts(const SparseRows<Index>& given) {
  const auto& starts = given.starts;
  if (starts.empty() || starts[0] != 0 ||
      static_cast<std::size_t>(starts.back()) != given.indices.size())
    throw std::invalid_argument(
        "The row offsets of the sparse table do not cover all of its stored values.");
  for (std::size_t i = 1; i < starts.size(); ++i)
    if (starts[i] < starts[i - 1])
      throw std::invalid_argument("A row of a sparse table ends before it begins.");
  std::vector<std::size_t> begin(given.n_columns + 1);
  for (const Index c : given.indices) {
    if (c < 0 || static_cast<std::size_t>(c) >= given.n_columns)
      throw std::invalid_argument("The sparse table has a column index outside its columns.");
    ++begin[static_cast<std::size_t>(c) + 1];
  }
  for (std::size_t c = 0; c < given.n_columns; ++c) begin[c + 1] += begin[c];
  return begin;
}

struct Stored {
  std::vector<std::size_t> begin;  // of each column in rows and values
  std::vector<RowId> rows;
  std::vector<std::byte> values;
};

// Puts rows and values, as T, in the order of the columns; without `with_values` the rows alone.
template <class T, class Index>
void scatter(const SparseRows<Index>& given, bool with_values, Stored& into) {
  std::vector<std::size_t> next(into.begin.begin(), into.begin.end() - 1);
  const std::size_t n = given.indices.size();
  into.rows.resize(n);
  into.values.resize((with_values ? n : std::min<std::size_t>(n, 1)) * sizeof(T));
  auto* values = reinterpret_cast<T*>(into.values.data());
  double block[block_rows];
  std::size_t block_begin = 0, block_end = 0, row = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == block_end) {
      block_begin = i;
      block_end = std::min(n, i + block_rows);
      if (with_values || i == 0) read_block(*given.values, i, block_end, block, 1);
      if (i == 0) values[0] = static_cast<T>(block[0]);
    }
    while (static_cast<std::size_t>(given.starts[row + 1]) <= i) ++row;
    const auto column = static_cast<std::size_t>(given.indices[i]);
    const std::size_t at = next[column]++;
    if (at > into.begin[column] && into.rows[at - 1] == row)
      throw std::invalid_argument("The sparse table stores two values for one cell.");
    into.rows[at] = static_cast<RowId>(row);
    if (with_values) values[at] = static_cast<T>(block[i - block_begin]);
  }
}

}  // namespace

template <class Index>
Columns transpose(const SparseRows<Index>& given) {
  auto stored = std::make_shared<Stored>();
  stored->begin = column_starts(given);
  const Narrow narrow = find_narrow(*given.values, given.indices.size());
  Type type = Type::float64;
  if (narrow.int8) {
    type = Type::int8;
    scatter<std::int8_t>(given, !narrow.is_one, *stored);
  } else if (narrow.int16) {
    type = Type::int16;
    scatter<std::int16_t>(given, !narrow.is_one, *stored);
  } else if (narrow.float32) {
    type = Type::float32;
    scatter<float>(given, !narrow.is_one, *stored);
  } else {
    scatter<double>(given, !narrow.is_one, *stored);
  }
  const std::size_t size = item_size(type), step = narrow.is_one ? 0 : size;
  Columns table;
  table.n_rows = given.starts.size() - 1;
  table.columns.resize(given.n_columns);
  for (std::size_t c = 0; c < given.n_columns; ++c) {
    const std::size_t begin = stored->begin[c], n = stored->begin[c + 1] - begin;
    Column& column = table.columns[c];
    column.type = type;
    column.stride = static_cast<std::ptrdiff_t>(step);
    column.sparse = {stored->rows.data() + begin, stored->values.data() + begin * step, n,
                     given.fill};
  }
  table.owners.push_back(std::move(stored));
  return table;
}

template Columns transpose(const SparseRows<std::int32_t>&);
template Columns transpose(const SparseRows<std::int64_t>&);

}  // namespace arboost
