// Iteration over a node's rows, or the sums of its codes, for searches without a kernel of their
// own.
#pragma once

#include <algorithm>

#include "grow/split/split_search.h"

namespace arboost {

// Calls use(code, sums) with nonzero sums [channels] of rows or of codes, each code once or several
// times, until it returns false.
template <class Use>
void SplitSearch::each_sum(const GrowNode& node, std::uint32_t feature,
                           const Scratch& member_scratch, Scratch& scratch, Use use) const {
  const std::size_t n = node.n_rows();
  const std::size_t channels = node.histogram != nullptr ? histograms_.channels() : channels_;
  const auto is_zero = [](std::int64_t sum) { return sum == 0; };
  const auto visit = [&](std::uint32_t code, const std::int64_t* sums) {
    return std::all_of(sums, sums + channels, is_zero) || use(code, sums);
  };
  if (sorted_ != nullptr) {
    const Element* elements = sorted_->elements(feature, node);
    std::vector<std::int64_t>& sums = scratch.buffer;
    sums.assign(channels_, 1);  // the last one counts, or is written over
    for (std::size_t i = 0; i < n; ++i) {
      std::copy_n(rows_.sums().wide + row_of(elements[i]) * width_, width_, sums.data());
      if (!visit(static_cast<std::uint32_t>(elements[i] >> 32), sums.data())) return;
    }
    return;
  }
  if (node.histogram == nullptr && codes_.where[feature].kind == Storage::single) {
    const Element* elements = rows_.elements(node);
    const std::size_t store = codes_.where[feature].store;
    const auto each_row = [&](const auto* column) {
      for (std::size_t i = 0; i < n; ++i)
        if (!visit(column[row_of(elements[i])], member_scratch.values.data() + i * channels_))
          return;
    };
    codes_.width == 1 ? each_row(codes_.column<std::uint8_t>(store))
                      : each_row(codes_.column<std::uint16_t>(store));
    return;
  }
  const std::int64_t* sums =
      codes_.where[feature].kind == Storage::single
          ? own_slots(node, feature)
          : member_scratch.sums->of(feature, node.sums.data(), scratch.buffer);
  for (std::uint32_t code = 0; code < codes_.n_codes(feature); ++code)
    if (!visit(code, sums + code * channels)) return;
}

// The code of one row in a sparse column.
inline std::uint32_t sparse_code(const Codes& codes, const FeatureStorage& storage, RowId row) {
  const SparseCodes& sparse = codes.sparse;
  const RowId* begin = sparse.rows.data() + sparse.start[storage.store];
  const RowId* end = sparse.rows.data() + sparse.start[storage.store + std::size_t{1}];
  const RowId* at = std::lower_bound(begin, end, row);
  if (at == end || *at != row) return storage.usual;
  const auto k = static_cast<std::size_t>(at - sparse.rows.data());
  return codes.width == 1 ? sparse.codes[k]
                          : reinterpret_cast<const std::uint16_t*>(sparse.codes.data())[k];
}

// Calls use(code, row) for each row of the node.
template <class Use>
void SplitSearch::each_row(const GrowNode& node, std::uint32_t feature, Use use) const {
  const std::size_t n = node.n_rows();
  if (sorted_ != nullptr) {
    const Element* elements = sorted_->elements(feature, node);
    for (std::size_t i = 0; i < n; ++i)
      use(static_cast<std::uint32_t>(elements[i] >> 32), row_of(elements[i]));
    return;
  }
  const Element* elements = rows_.elements(node);
  const FeatureStorage& storage = codes_.where[feature];
  const auto each = [&](auto code_of) {
    for (std::size_t i = 0; i < n; ++i) use(code_of(row_of(elements[i])), row_of(elements[i]));
  };
  const auto* one_byte = codes_.column<std::uint8_t>(storage.store);
  const auto* two_bytes = codes_.column<std::uint16_t>(storage.store);
  if (storage.kind == Storage::shared)
    each([&](RowId row) { return codes_.decode(feature, one_byte[row]); });
  else if (storage.kind == Storage::single && codes_.width == 1)
    each([&](RowId row) { return std::uint32_t{one_byte[row]}; });
  else if (storage.kind == Storage::single)
    each([&](RowId row) { return std::uint32_t{two_bytes[row]}; });
  else
    each([&](RowId row) { return sparse_code(codes_, storage, row); });
}

}  // namespace arboost
