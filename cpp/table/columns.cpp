// Column views -> doubles. Cost: one load and conversion a value; masks and bitmaps take extra
// passes. Called from any thread.
#include "table/columns.h"

#include <cstring>  // loads from any alignment
#include <stdexcept>

namespace arboost {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

template <class T>
double load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return to_double(value);
}

bool bit_at(const std::uint8_t* bitmap, std::size_t i) {
  return bitmap[i >> 3] >> (i & 7) & 1;
}

// Calls visitor<T>() with the type's C++ number type.
template <class Visitor>
void with_type(Type type, Visitor&& visitor) {
  if (!with_number(type, visitor))
    throw std::logic_error("a column type without numbers was read as numbers");
}

// `row(i)` is the i-th wanted row, counted from the beginning of the piece; `put(i, x)` stores.
template <class RowOf, class Put>
void read_piece(const Column& column, const Piece& piece, std::size_t n, const RowOf& row,
                const Put& put) {
  if (column.type == Type::null) {
    for (std::size_t i = 0; i < n; ++i) put(i, missing);
  } else if (column.type == Type::bit) {
    const auto* bitmap = reinterpret_cast<const std::uint8_t*>(piece.values);
    for (std::size_t i = 0; i < n; ++i)
      put(i, bit_at(bitmap, piece.first_bit + row(i)) ? 1.0 : 0.0);
  } else {
    with_type(column.type, [&]<class T>() {
      const std::byte* values = piece.values;
      if (column.stride ==
          static_cast<std::ptrdiff_t>(sizeof(T))) {  // constant stride: the loop vectorises
        for (std::size_t i = 0; i < n; ++i) put(i, load<T>(values + row(i) * sizeof(T)));
      } else {
        const std::ptrdiff_t stride = column.stride;
        for (std::size_t i = 0; i < n; ++i)
          put(i, load<T>(values + static_cast<std::ptrdiff_t>(row(i)) * stride));
      }
    });
  }
  if (piece.mask != nullptr) {
    for (std::size_t i = 0; i < n; ++i)
      if (piece.mask[static_cast<std::ptrdiff_t>(row(i)) * piece.mask_stride] != 0) put(i, missing);
  }
  if (piece.valid != nullptr) {
    for (std::size_t i = 0; i < n; ++i)
      if (!bit_at(piece.valid, piece.first_valid + row(i))) put(i, missing);
  }
}

// The piece that holds the row.
const Piece* find_piece(const Column& column, std::size_t row) {
  const auto& pieces = column.pieces;
  if (pieces.size() == 1) return pieces.data();
  const auto after = std::upper_bound(pieces.begin(), pieces.end(), row,
                                      [](std::size_t r, const Piece& p) { return r < p.begin; });
  return &*(after - 1);
}

// Index of a sparse column's first stored value in rows from `row` on.
std::size_t first_stored(const Sparse& sparse, std::size_t row) {
  const RowId* end = sparse.rows + sparse.size;
  return static_cast<std::size_t>(std::lower_bound(sparse.rows, end, row) - sparse.rows);
}

// Calls put(i, value) for the values i of [begin, end) that a sparse column has of its own.
template <class Put>
void read_stored(const Column& column, std::size_t begin, std::size_t end, const Put& put) {
  with_type(column.type, [&]<class T>() {
    const std::byte* at =
        column.sparse->values + static_cast<std::ptrdiff_t>(begin) * column.stride;
    for (std::size_t i = begin; i < end; ++i, at += column.stride) put(i, load<T>(at));
  });
}

void read_sparse_block(const Column& column, std::size_t begin, std::size_t end, double* out,
                       std::size_t out_stride) {
  const Sparse& sparse = *column.sparse;
  for (std::size_t i = 0; i < end - begin; ++i) out[i * out_stride] = sparse.fill;
  read_stored(column, first_stored(sparse, begin), first_stored(sparse, end),
              [&](std::size_t i, double x) { out[(sparse.rows[i] - begin) * out_stride] = x; });
}

double sparse_value(const Column& column, std::size_t i) {
  double value = 0;
  read_stored(column, i, i + 1, [&](std::size_t, double x) { value = x; });
  return value;
}

void read_sparse_rows(const Column& column, std::span<const RowId> rows, double* out) {
  const Sparse& sparse = *column.sparse;
  std::size_t at = rows.empty() ? 0 : first_stored(sparse, rows[0]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i] < rows[i - 1]) at = first_stored(sparse, rows[i]);
    while (at < sparse.size && sparse.rows[at] < rows[i]) ++at;
    out[i] =
        at < sparse.size && sparse.rows[at] == rows[i] ? sparse_value(column, at) : sparse.fill;
  }
}

void drop_missing(double missing_value, std::size_t n, std::size_t stride, double* values) {
  if (missing_value != missing_value) return;
  for (std::size_t i = 0; i < n; ++i)
    if (values[i * stride] == missing_value) values[i * stride] = missing;
}

}  // namespace

void read_stored(const Column& column, std::size_t begin, std::size_t end, double* out) {
  read_stored(column, begin, end, [&](std::size_t i, double x) { out[i - begin] = x; });
  drop_missing(column.missing, end - begin, 1, out);
}

double fill_of(const Column& column) {
  const double fill = column.sparse->fill;
  return fill == column.missing ? missing : fill;
}

bool fits_float32(Type type) {
  switch (type) {
    case Type::int32:
    case Type::int64:
    case Type::uint32:
    case Type::uint64:
    case Type::float64:
      return false;
    default:
      return true;
  }
}

void read_block(const Column& column, std::size_t begin, std::size_t end, double* out,
                std::size_t out_stride) {
  if (begin >= end) return;
  double* const first_out = out;
  const std::size_t n = end - begin;
  if (column.sparse) {
    read_sparse_block(column, begin, end, out, out_stride);
    return drop_missing(column.missing, n, out_stride, out);
  }
  for (const Piece* piece = find_piece(column, begin); begin < end; ++piece) {
    const std::size_t stop = std::min(end, piece->end), first = begin - piece->begin;
    const auto row = [first](std::size_t i) { return first + i; };
    if (out_stride == 1) {
      read_piece(column, *piece, stop - begin, row, [out](std::size_t i, double x) { out[i] = x; });
    } else {
      read_piece(column, *piece, stop - begin, row,
                 [out, out_stride](std::size_t i, double x) { out[i * out_stride] = x; });
    }
    out += (stop - begin) * out_stride;
    begin = stop;
  }
  drop_missing(column.missing, n, out_stride, first_out);
}

void read_rows(const Column& column, std::span<const RowId> rows, double* out) {
  if (column.sparse) read_sparse_rows(column, rows, out);
  for (std::size_t begin = 0; begin < rows.size() && !column.sparse;) {
    const Piece* piece = find_piece(column, rows[begin]);
    const auto inside = [piece](RowId r) { return r >= piece->begin && r < piece->end; };
    std::size_t end = begin + 1;
    if (column.pieces.size() == 1) {
      end = rows.size();
    } else {
      while (end < rows.size() && inside(rows[end])) ++end;
    }
    read_piece(
        column, *piece, end - begin,
        [wanted = rows.data() + begin, first = piece->begin](std::size_t i) {
          return wanted[i] - first;
        },
        [out, begin](std::size_t i, double x) { out[begin + i] = x; });
    begin = end;
  }
  drop_missing(column.missing, rows.size(), 1, out);
}

std::vector<std::size_t> inexact_columns(const Columns& table) {
  constexpr double limit = 0x1p53;  // 2^53 + 1 reads as 2^53, so the limit itself is suspect
  std::vector<std::size_t> wide, wide_columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Type type = table.columns[c].type;
    if (type == Type::int64 || type == Type::uint64) wide.push_back(c);
  }
  double block[block_rows];
  for (std::size_t begin = 0; begin < table.n_rows && !wide.empty(); begin += block_rows) {
    const std::size_t end = std::min(begin + block_rows, table.n_rows);
    std::erase_if(wide, [&](std::size_t c) {
      read_block(table.columns[c], begin, end, block, 1);
      bool beyond = false;
      for (std::size_t i = 0; i < end - begin; ++i)
        beyond |= (block[i] >= limit) | (block[i] <= -limit);
      if (beyond) wide_columns.push_back(c);
      return beyond;
    });
  }
  std::sort(wide_columns.begin(), wide_columns.end());
  return wide_columns;
}

}  // namespace arboost
