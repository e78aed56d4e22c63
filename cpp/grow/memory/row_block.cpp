// Rows are copied once a block, and moved once a level: about 1 ns a row.
#include "grow/memory/row_block.h"

#include <algorithm>
#include <cstring>

namespace arboost {
namespace {

constexpr std::size_t register_bytes = 32, most_lanes = 64;
constexpr std::size_t chunk = 16;  // bytes that move at once

template <std::size_t fixed_chunks>  // 0: known only at run time
inline void copy_row(const std::uint8_t* from, std::size_t chunks, std::uint8_t* to) {
  const std::size_t n = fixed_chunks == 0 ? chunks : fixed_chunks;
  for (std::size_t c = 0; c < n; ++c) std::memcpy(to + c * chunk, from + c * chunk, chunk);
}

struct Moved {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::size_t n, stride, column, element_at;
  Element* elements;
};

// Left rows upwards, right rows downwards. Their place is computed: branches would be
// unpredictable.
template <std::size_t fixed_chunks, class GoesLeft>
std::size_t move_rows(const Moved& m, GoesLeft goes_left) {
  const std::size_t stride = fixed_chunks == 0 ? m.stride : fixed_chunks * chunk;
  std::size_t left = 0;
  const std::uint8_t* row = m.from;
  for (std::size_t i = 0; i < m.n; ++i, row += stride) {
    const std::size_t is_left = goes_left(row[m.column]) ? 1 : 0;
    const std::size_t from_end = m.n - 1 - i;  // a right row goes to left + from_end
    const std::size_t to = left + (from_end & (is_left - 1));
    left += is_left;
    copy_row<fixed_chunks>(row, stride / chunk, m.to + to * stride);
    std::memcpy(m.elements + to, row + m.element_at, sizeof(Element));
  }
  return left;
}

template <class GoesLeft>
std::size_t move_rows_by(const Moved& m, GoesLeft goes_left) {
  return m.stride == 3 * chunk ? move_rows<3>(m, goes_left) : move_rows<0>(m, goes_left);
}

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
  const Moved moved{at(begin, depth),       at(begin, depth + 1), end - begin, stride_,
                    layout.column(feature), element_at_,          elements};
  if (rule.by_set)
    return move_rows_by(moved, [&](std::uint32_t code) { return holds(rule.left, code); });
  const std::uint32_t bin = rule.bin, missing_left = rule.missing_left;
  return move_rows_by(moved,
                      [=](std::uint32_t code) { return (code <= bin) | (code == missing_left); });
}

}  // namespace arboost
