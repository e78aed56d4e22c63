// No copy, and no work on rows.
#include "predict/device/table_source.h"

#include <algorithm>
#include <bit>  // bit_cast

namespace arboost::cuda {
namespace {

bool is_whole(const Column& column) {
  return !column.sparse && column.pieces.size() == 1 && column.pieces[0].mask == nullptr &&
         column.pieces[0].valid == nullptr && item_size(column.type) > 0;
}

bool is_matrix(const Columns& table) {
  if (!std::all_of(table.columns.begin(), table.columns.end(), is_whole)) return false;
  const Column& first = table.columns.front();
  const std::size_t size = item_size(first.type);
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    if (column.type != first.type ||
        column.stride != static_cast<std::ptrdiff_t>(size * table.columns.size()) ||
        column.pieces[0].values != first.pieces[0].values + c * size)
      return false;
  }
  return true;
}

}  // namespace

TableSource device_source(const DeviceColumns& columns) {
  TableSource source;
  source.device = &columns;
  source.n_rows = columns.n_rows;
  return source;
}

TableSource host_source(const Columns& columns, std::size_t n_used) {
  TableSource source;
  source.host = &columns;
  source.n_rows = columns.n_rows;
  if (columns.n_rows == 0 || columns.columns.empty() || !is_matrix(columns)) return source;
  const std::size_t row_bytes = item_size(columns.columns[0].type) * columns.columns.size();
  if (row_bytes > n_used * sizeof(double)) return source;
  source.matrix = columns.columns[0].pieces[0].values;
  source.row_bytes = row_bytes;
  return source;
}

}  // namespace arboost::cuda
