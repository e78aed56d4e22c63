// Tables as typed columns: zero-copy views of the user's memory, read block by block as doubles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "table/values.h"

namespace arboost {

// True if float32 represents every value of the type exactly.
bool fits_float32(Type type);

// Rows [begin, end) of a column, stored in one piece. A value is missing where it is NaN, where the
// byte mask is not 0, or where the bit of the validity bitmap is 0.
struct Piece {
  std::size_t begin = 0, end = 0;
  const std::byte* values =
      nullptr;  // row `begin`; for bits the bitmap, whose bit `first_bit` it is
  std::size_t first_bit = 0;
  const std::uint8_t* mask = nullptr;  // row `begin`; null: nothing is masked
  std::ptrdiff_t mask_stride = 0;
  const std::uint8_t* valid = nullptr;  // bitmap whose bit `first_valid` belongs to row `begin`
  std::size_t first_valid = 0;
};

// Values of some rows; all other rows have the value `fill`, NaN for missing. There are no pieces
// then, and the column's stride leads from one of `values` to the next.
struct Sparse {
  const RowId* rows = nullptr;  // [size], ascending
  const std::byte* values = nullptr;
  std::size_t size = 0;
  double fill = 0;
};

// Pieces without gaps, in the order of the rows; none where the table has no rows.
struct Column {
  Type type = Type::null;
  std::ptrdiff_t stride = 0;  // bytes from one value to the next, of either sign
  std::vector<Piece> pieces;
  std::optional<Sparse> sparse;
  double missing = std::numeric_limits<double>::quiet_NaN();  // stands for missing, as NaN does
};

// A column whose rows are one piece.
inline Column whole_column(Type type, std::ptrdiff_t stride, const void* values,
                           std::size_t n_rows) {
  Column column;
  column.type = type;
  column.stride = stride;
  if (n_rows > 0)
    column.pieces = {Piece{.end = n_rows, .values = static_cast<const std::byte*>(values)}};
  return column;
}

struct Columns {
  std::size_t n_rows = 0;
  std::vector<Column> columns;
  std::vector<std::shared_ptr<const void>> owners;  // keep the memory alive

  bool has_sparse() const {
    return std::any_of(columns.begin(), columns.end(),
                       [](const Column& column) { return column.sparse.has_value(); });
  }
};

// Values of rows [begin, end) as doubles, missing ones as NaN; row i goes to
// out[(i - begin) * out_stride].
void read_block(const Column& column, std::size_t begin, std::size_t end, double* out,
                std::size_t out_stride);

// Values of the given rows, in their order.
void read_rows(const Column& column, std::span<const RowId> rows, double* out);

// Stored values [begin, end) of a sparse column, and the value of all other rows; missing ones as
// NaN.
void read_stored(const Column& column, std::size_t begin, std::size_t end, double* out);
double fill_of(const Column& column);

// Indices of the columns with integers beyond 2^53, which doubles do not represent exactly.
std::vector<std::size_t> inexact_columns(const Columns& table);

// The rows of a table that a fit uses: all of them, or those of an index.
class Rows {
 public:
  Rows(std::size_t n_rows, const RowId* index) : n_rows_(n_rows), index_(index) {}
  std::size_t size() const { return n_rows_; }
  bool is_all() const { return index_ == nullptr; }
  const RowId* index() const { return index_; }  // null: all rows
  void read(const Column& column, std::size_t begin, std::size_t end, double* out) const {
    if (index_ == nullptr) return read_block(column, begin, end, out, 1);
    read_rows(column, {index_ + begin, end - begin}, out);
  }
  RowId operator[](std::size_t i) const {
    return index_ == nullptr ? static_cast<RowId>(i) : index_[i];
  }

 private:
  std::size_t n_rows_;
  const RowId* index_;
};

// Rows of a block that is read column by column: few enough that the cache lines of a row-major
// table stay in the cache from one column to the next.
constexpr std::size_t block_rows = 256;

}  // namespace arboost
