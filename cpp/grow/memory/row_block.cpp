// Rows are copied once a block, and moved once a level: about 1 ns a row.
#include "grow/memory/row_block.h"

#include <algorithm>
#include <cstring>

namespace arboost {
namespace {

constexpr std::size_t register_bytes = 32;

}  // namespace

RowLayout::RowLayout(const Codes& codes, const std::uint8_t* const* tables) : codes_(codes) {
  std::size_t n_columns = codes.n_stores;
  for (std::size_t f = 0; f < codes.n_features; ++f)
    n_columns += codes.where[f].kind == Storage::shared ? 1 : 0;
  const std::size_t n_bytes = std::max(n_columns, codes.row_stride);
  if (codes.width != 1 || codes.by_row.size() == 0 || codes.sparse.size() > 0 ||
      n_bytes > most_lanes)
    return;
  lanes_ = (n_bytes + register_bytes - 1) / register_bytes * register_bytes;
  columns_.resize(codes.n_features);
  missing_.assign(lanes_, 255);
  std::size_t next = codes.n_stores;
  for (std::size_t f = 0; f < codes.n_features; ++f) {
    const FeatureStorage& where = codes.where[f];
    const bool is_shared = where.kind == Storage::shared;
    const std::size_t column = is_shared ? next++ : where.store;
    if (is_shared) shared_.push_back({where.store, column, tables[f]});
    columns_[f] = static_cast<std::uint8_t>(column);
    if (codes.has_missing[f] == 0) continue;
    missing_[column] = static_cast<std::uint8_t>(codes.n_bins[f]);
    any_missing_ = true;
  }
}

void RowLayout::copy_codes(RowId row, std::uint8_t* to) const {
  const std::uint8_t* from = codes_.row<std::uint8_t>(row);
  std::memcpy(to, from, codes_.row_stride);
  for (const Shared& shared : shared_) to[shared.column] = shared.table[from[shared.store]];
}

void RowBlock::open(const RowLayout& layout, const RowPartition& rows, std::size_t channels,
                    const Element* elements, std::size_t begin, std::size_t end, std::int64_t depth,
                    std::vector<std::int64_t>& values) {
  const std::size_t n = end - begin;
  stride_ = layout.stride(channels);
  begin_ = begin;
  end_ = end;
  depth_ = depth;
  element_at_ = layout.lanes() + channels * sizeof(std::int64_t);
  for (auto& buffer : rows_) make_room(buffer, (n + padded_rows) * stride_);
  if (values.size() < n * channels + padded_rows) values.resize(n * channels + padded_rows);
  rows.read_values(elements, n, values.data());
  std::uint8_t* to = rows_[0].data();
  for (std::size_t i = 0; i < n; ++i, to += stride_) {
    layout.copy_codes(row_of(elements[i]), to);
    std::memcpy(to + layout.lanes(), values.data() + i * channels, channels * sizeof(std::int64_t));
    std::memcpy(to + element_at_, elements + i, sizeof(Element));
  }
}

std::size_t RowBlock::split(const RowLayout& layout, std::size_t feature, const SplitRule& rule,
                            std::size_t begin, std::size_t end, std::int64_t depth,
                            Element* elements) {
  return grow_kernels().move_rows({at(begin, depth), at(begin, depth + 1), end - begin, stride_,
                                   layout.column(feature), element_at_, elements},
                                  rule);
}

}  // namespace arboost
