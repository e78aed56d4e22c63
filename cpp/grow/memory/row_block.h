// Rows of a small node, side by side in memory of their own: a search reads them in order, and a
// split moves them. Each row has the codes of all features, one byte each, its contributions and
// its element:
//
//   codes [lanes] | values [channels] | element | padding to `stride`
//
// Two arrays: the rows of a node are in one of them, those of its children in the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "grow/rows/row_partition.h"
#include "grow/search/search_data.h"
#include "table/codes.h"

namespace arboost {

// Where a row has what; for tables of one-byte codes with few columns.
class RowLayout {
 public:
  // `tables`: as in FewRows.
  RowLayout(const Codes& codes, const std::uint8_t* const* tables);

  // False if rows are too long to be moved.
  bool fits(std::size_t channels) const { return lanes_ > 0 && channels <= most_channels; }
  std::size_t stride(std::size_t channels) const {
    return (lanes_ + (channels + 1) * sizeof(std::int64_t) + 15) / 16 * 16;
  }
  std::size_t lanes() const { return lanes_; }
  std::size_t column(std::size_t feature) const { return columns_[feature]; }
  void copy_codes(RowId row, std::uint8_t* to) const;
  DenseRows rows(const std::uint8_t* first, std::size_t stride) const {
    return {first, stride, lanes_, columns_.data(), missing_.data(), any_missing_};
  }

 private:
  static constexpr std::size_t most_channels = 8;

  struct Shared {  // a feature of a shared column, in a column of its own
    std::size_t store, column;
    const std::uint8_t* table;
  };

  const Codes& codes_;
  std::size_t lanes_ = 0;
  std::vector<std::uint8_t> columns_;  // by feature
  std::vector<std::uint8_t> missing_;  // by column
  bool any_missing_ = false;
  std::vector<Shared> shared_;
};

class RowBlock {
 public:
  static constexpr std::size_t most_rows = 65536;  // two arrays of 3 MB, of 28 columns

  // Copies the rows of a node whose elements are [begin, end) of `elements`; `values` is scratch.
  void open(const RowLayout& layout, const RowPartition& rows, std::size_t channels,
            const Element* elements, std::size_t begin, std::size_t end, std::int64_t depth,
            std::vector<std::int64_t>& values);
  void close() { end_ = begin_; }
  bool covers(std::size_t begin, std::size_t end) const { return begin >= begin_ && end <= end_; }

  DenseRows rows(const RowLayout& layout, std::size_t begin, std::int64_t depth) const {
    return layout.rows(at(begin, depth), stride_);
  }

  // Moves the rows of a node, and orders its elements alike; returns how many went left.
  std::size_t split(const RowLayout& layout, std::size_t feature, const SplitRule& rule,
                    std::size_t begin, std::size_t end, std::int64_t depth, Element* elements);

 private:
  const std::uint8_t* at(std::size_t begin, std::int64_t depth) const {
    return rows_[(depth - depth_) & 1].data() + (begin - begin_) * stride_;
  }
  std::uint8_t* at(std::size_t begin, std::int64_t depth) {
    return rows_[(depth - depth_) & 1].data() + (begin - begin_) * stride_;
  }

  Buffer<std::uint8_t> rows_[2];
  std::size_t begin_ = 0, end_ = 0, stride_ = 0;
  std::size_t element_at_ = 0;  // in a row
  std::int64_t depth_ = 0;
};

}  // namespace arboost
