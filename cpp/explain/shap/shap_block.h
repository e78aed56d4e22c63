// A block of a table's rows as doubles, column-major: the input of the SHAP kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/buffer.h"  // Buffer
#include "explain/shap/shap_program.h"
#include "table/columns.h"

namespace arboost {

constexpr std::size_t whole_lanes(std::size_t rows) {
  return (rows + shap_lanes - 1) / shap_lanes * shap_lanes;
}

class ShapBlock {
 public:
  ShapBlock(const Columns& table, const std::vector<ShapForest::Column>& columns, std::size_t rows)
      : table_(table), columns_(columns), stride_(whole_lanes(rows)) {
    values_ = Buffer<double>(std::max<std::size_t>(1, columns.size()) * stride_);
    std::fill_n(values_.data(), values_.size(), 0.0);
  }

  std::size_t stride() const { return stride_; }
  const double* values() const { return values_.data(); }

  void read(std::size_t begin, std::size_t end) {
    double* values = values_.data();
    for (const ShapForest::Column& column : columns_) {
      read_block(table_.columns[column.feature], begin, end, values, 1);
      if (column.of_codes) std::transform(values, values + (end - begin), values, level_or_missing);
      values += stride_;
    }
  }

 private:
  const Columns& table_;
  const std::vector<ShapForest::Column>& columns_;
  std::size_t stride_;
  Buffer<double> values_;
};

}  // namespace arboost
