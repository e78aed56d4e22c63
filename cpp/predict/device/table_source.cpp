// No copy, and no work on rows.
#include "predict/device/table_source.h"

#include <bit>  // bit_cast

namespace arboost::cuda {
namespace {

// float64 for types that devices do not read.
ValueType value_type(Type type) {
  switch (type) {
    case Type::boolean:
      return ValueType::boolean;
    case Type::int8:
      return ValueType::int8;
    case Type::int16:
      return ValueType::int16;
    case Type::int32:
      return ValueType::int32;
    case Type::int64:
      return ValueType::int64;
    case Type::uint8:
      return ValueType::uint8;
    case Type::uint16:
      return ValueType::uint16;
    case Type::uint32:
      return ValueType::uint32;
    case Type::uint64:
      return ValueType::uint64;
    case Type::float32:
      return ValueType::float32;
    default:
      return ValueType::float64;
  }
}

bool is_whole(const Column& column) {
  return !column.sparse && column.pieces.size() == 1 && column.pieces[0].mask == nullptr &&
         column.pieces[0].valid == nullptr;
}

bool is_matrix(const Columns& table) {
  const Column& first = table.columns.front();
  const std::size_t size = item_size(first.type);
  if (first.type != Type::float64 && value_type(first.type) == ValueType::float64) return false;
  if (!is_whole(first)) return false;
  const auto missing = std::bit_cast<std::uint64_t>(first.missing);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    if (column.type != first.type || !is_whole(column) ||
        column.stride != static_cast<std::ptrdiff_t>(size * table.columns.size()) ||
        std::bit_cast<std::uint64_t>(column.missing) != missing ||
        column.pieces[0].values != first.pieces[0].values + c * size)
      return false;
  }
  return true;
}

}  // namespace

TableSource device_source(const ValueRows& rows, std::size_t n_rows) {
  return {.host = nullptr, .rows = rows, .n_rows = n_rows, .row_bytes = 0};
}

TableSource host_source(const Columns& columns, std::size_t n_used) {
  TableSource source{.host = &columns, .rows = {}, .n_rows = columns.n_rows, .row_bytes = 0};
  if (columns.n_rows == 0 || columns.columns.empty() || !is_matrix(columns)) return source;
  const Column& first = columns.columns.front();
  const std::size_t size = item_size(first.type), row_bytes = size * columns.columns.size();
  if (row_bytes > n_used * sizeof(double)) return source;
  source.rows = {.values = reinterpret_cast<const unsigned char*>(first.pieces[0].values),
                 .row_stride = static_cast<std::int64_t>(row_bytes),
                 .column_stride = static_cast<std::int64_t>(size),
                 .type = value_type(first.type),
                 .missing = first.missing};
  source.row_bytes = row_bytes;
  return source;
}

}  // namespace arboost::cuda
